#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "doppler/program/expr/shape.h"
#include "doppler/units.h"

namespace doppler::program {

// A tensor that goes into a part of a model, or comes out of it.
struct PartValue {
  std::string name;
  std::string dtype;  // "sequence" and "optional" are types too, and have no shape
  Shape shape = {};
  Bytes bytes = 0;
  std::size_t from = 0;  // the part that makes it; PartsOfModel::kModel: it is fed in
};

// The nodes of one device that can run without waiting for another device in between.
struct PartOfModel {
  std::uint32_t device = 0;
  std::uint32_t level = 0;  // parts of one level do not wait for one another
  std::size_t nodes = 0;    // of the model; a node that depends on no data counts wherever it is
  Bytes parameter_bytes = 0;
  std::vector<PartValue> inputs, outputs;
  std::string file;  // its name within the directory
};

struct PartsOfModel {
  static constexpr std::size_t kModel = static_cast<std::size_t>(-1);

  std::vector<PartOfModel> parts;  // in an order in which they can run
  std::vector<PartValue> inputs, outputs;
  // Why libonnx does not call every part valid: it refuses the whole model, too. Empty: all are valid.
  std::string unchecked;
};

// Writes a model in parts, each a valid model, to files of a directory that exists. A part has the parameters that its
// nodes read, those that nodes with bodies read inside included; data that is in other files goes to a file of the part.
// Nodes that depend on parameters alone are in every part that needs them. `device_of_node` is in the order of the file;
// sizes that `dims` gives are left open in the parts. Throws InputError whose text starts with `where`.
PartsOfModel split_onnx(const std::string& where, std::string_view content, const std::map<std::string, Index>& dims,
                        const std::vector<std::uint32_t>& device_of_node, const std::string& directory);

}  // namespace doppler::program
