#include "doppler/program/onnx/fold_rules.h"
#include "doppler/program/onnx/operators.h"

namespace doppler::program {
namespace {

std::optional<Constant> fold_output(const Operator& op, const onnx::NodeProto& node,
                                    const std::vector<const Constant*>& inputs,
                                    const std::vector<onnx::TypeProto>& outputs, std::size_t output) {
  const onnx::TypeProto& type = outputs[output];
  if (!is_tensor(type) || !is_complete(type)) return std::nullopt;
  const Shape dims = *dims_of(type);
  const Index count = element_count(dims, describe(node));
  if (count > kMostFolded) return std::nullopt;
  if (count == 0) return Constant{element_of(type), dims, {}};
  for (const Constant* input : inputs)
    if (input != nullptr && input->values.empty()) return std::nullopt;
  if (op.fold == nullptr || inputs.empty() || inputs[0] == nullptr) return std::nullopt;
  std::optional<std::vector<double>> values = op.fold({node, inputs, outputs, output, dims});
  if (!values || static_cast<Index>(values->size()) != count) return std::nullopt;
  return Constant{element_of(type), dims, std::move(*values)};
}

}  // namespace

std::optional<std::vector<Constant>> fold(const Operator& op, const onnx::NodeProto& node,
                                          const std::vector<const Constant*>& inputs,
                                          const std::vector<onnx::TypeProto>& outputs) {
  if (!domain_of(node).empty() || outputs.empty() || (outputs.size() > 1 && !op.traits.each_output))
    return std::nullopt;
  std::vector<Constant> constants;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::optional<Constant> constant = fold_output(op, node, inputs, outputs, i);
    if (!constant) return std::nullopt;
    constants.push_back(std::move(*constant));
  }
  return constants;
}

std::optional<Constant> fold_type(const Operator& op, const onnx::NodeProto& node, const onnx::TypeProto& input) {
  if (op.traits.fold_type == nullptr || !is_tensor(input) || !is_complete(input)) return std::nullopt;
  return op.traits.fold_type(node, input);
}

}  // namespace doppler::program
