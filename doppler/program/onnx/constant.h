#pragma once

#include "doppler/program/onnx/proto.h"

namespace doppler::program {

// The value of a small tensor, known when the model is read: what shapes are computed from. Doubles hold every
// integer up to 2^53, and the largest int64 (how exporters write "to the end") survives the round trip.
struct Constant {
  std::int32_t element = 0;
  Shape dims;
  std::vector<double> values;

  Index as_index(std::size_t i) const;
};

// Values of more elements than this are not followed; only shapes depend on values, and those are short.
inline constexpr Index kMostFolded = 4096;

// Throws InputError naming `what` if the tensor does not hold the bytes that its shape claims. External data is
// never read, but its shape counts.
void check_data(const onnx::TensorProto& tensor, const std::string& what);
// Returns nothing for large tensors, external data, text, and element types whose bits we do not read.
std::optional<Constant> read_constant(const onnx::TensorProto& tensor);
onnx::TensorProto to_proto(const Constant& constant);

// The value of a Constant node, with the type it has. Reading it throws InputError if there is none.
struct ConstantNode {
  onnx::TypeProto type;
  std::optional<Constant> value;
};
ConstantNode read_constant_node(const onnx::NodeProto& node);

}  // namespace doppler::program
