#include "doppler/program/onnx/static_values.h"

#include <algorithm>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/base/module.h"
#include "doppler/program/onnx/convert.h"
#include "doppler/program/onnx/node_evaluator.h"

namespace doppler::model {

const NodeEvaluator& open_node_evaluator() {
  const Module module{"doppler_models", "shapes that a model computes", "a build by `make`, which has it"};
  using Open = const NodeEvaluator* (*)();
  static const NodeEvaluator* const evaluator =
      reinterpret_cast<Open>(open_module(module, library_directory(), "doppler_node_evaluator"))();
  return *evaluator;
}

}  // namespace doppler::model

namespace doppler::program {
namespace {

// A mask of a window attention has a million elements; what is larger holds weights, on which no shape depends.
constexpr Index kMostComputed = Index{1} << 26;

}  // namespace

bool StaticValues::known(ValueId id) {
  if (id == kNone || values_.contains(id)) return true;
  const ModelValue& value = reading_.values[id];
  const std::string what = fmt::format("{}: tensor '{}'", reading_.where, value.name);
  if (value.constant)
    values_[id] = model::to_tensor(to_proto(*value.constant), what);
  else if (value.initializer != nullptr && value.initializer->data_location() != onnx::TensorProto::EXTERNAL &&
           elements(value.type) <= kMostComputed)
    values_[id] = model::to_tensor(*value.initializer, what);
  return values_.contains(id);
}

std::vector<std::uint32_t> StaticValues::needed(ValueId id) {
  for (; seen_ < reading_.static_ops.size(); ++seen_)
    for (const ValueId output : reading_.static_ops[seen_].outputs)
      if (output != kNone) producers_[output] = seen_;
  std::vector<std::uint32_t> found;
  std::vector<ValueId> open = {id};
  std::unordered_set<std::uint32_t> visited;
  while (!open.empty()) {
    const ValueId next = open.back();
    open.pop_back();
    if (known(next)) continue;
    const auto producer = producers_.find(next);
    if (producer == producers_.end() || elements(reading_.values[next].type) > kMostComputed) return {};
    if (!visited.insert(producer->second).second) continue;
    found.push_back(producer->second);
    const std::vector<ValueId>& inputs = reading_.static_ops[producer->second].inputs;
    open.insert(open.end(), inputs.begin(), inputs.end());
  }
  std::sort(found.begin(), found.end());  // static ops are in the order in which they can run
  return found;
}

std::vector<model::Value> StaticValues::arguments(const std::vector<ValueId>& inputs) const {
  std::vector<model::Value> values;
  for (const ValueId id : inputs) values.push_back(id == kNone ? model::Value() : values_.at(id));
  return values;
}

void StaticValues::run(const ModelOp& op) {
  std::vector<model::Value> outputs =
      model::open_node_evaluator().evaluate_node(model::to_node(*op.node), op.opset, arguments(op.inputs));
  for (std::size_t i = 0; i < op.outputs.size() && i < outputs.size(); ++i)
    if (op.outputs[i] != kNone) values_[op.outputs[i]] = std::move(outputs[i]);
}

std::optional<model::Tensor> StaticValues::find(ValueId id) {
  for (const std::uint32_t op : needed(id)) run(reading_.static_ops[op]);
  if (!known(id) || values_[id].kind != model::Value::Kind::tensor) return std::nullopt;
  return values_[id].tensor;
}

std::optional<std::vector<model::Value>> StaticValues::compute(const onnx::NodeProto& node, int opset,
                                                               const std::vector<ValueId>& inputs) {
  for (const ValueId id : inputs)
    if (id != kNone && !find(id)) return std::nullopt;
  return model::open_node_evaluator().evaluate_node(model::to_node(node), opset, arguments(inputs));
}

}  // namespace doppler::program
