#pragma once

#include "doppler/program/onnx/graph_body.h"
#include "doppler/program/onnx/reading.h"

namespace doppler::program {

// The values of what depends on no data, computed by the kernels and only where a shape depends on them: what libonnx
// and the rules of the operator table know is tried first, and costs neither time nor the module with the kernels.
class StaticValues {
 public:
  explicit StaticValues(const Reading& reading) : reading_(reading) {}

  // Returns the value, computing what it depends on. Returns nothing if that takes weights which the file does not hold,
  // sequences, or more memory than shapes are worth. Throws InputError if a node on the way cannot be computed.
  std::optional<model::Tensor> find(ValueId id);
  // Returns the outputs of a node whose inputs have these values; nothing if one of them has none.
  std::optional<std::vector<model::Value>> compute(const onnx::NodeProto& node, int opset,
                                                   const std::vector<ValueId>& inputs);

 private:
  bool known(ValueId id);                         // looks at what the file itself says
  void run(const ModelOp& op);                    // all of whose inputs are known
  std::vector<std::uint32_t> needed(ValueId id);  // static ops, producers first; none if it cannot be computed
  std::vector<model::Value> arguments(const std::vector<ValueId>& inputs) const;

  const Reading& reading_;
  std::unordered_map<ValueId, model::Value> values_;
  std::unordered_map<ValueId, std::uint32_t> producers_;  // static ops by what they write
  std::uint32_t seen_ = 0;                                // static ops that are in it
};

}  // namespace doppler::program
