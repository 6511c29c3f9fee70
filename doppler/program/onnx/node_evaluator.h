#pragma once

#include "doppler/program/onnx/graph_body.h"

namespace doppler::model {

// Computes single nodes from values: what a reader of models needs of the kernels to know shapes that the model itself
// computes. The kernels implement it, in the module doppler_models.
class NodeEvaluator {
 public:
  virtual ~NodeEvaluator() = default;
  // Returns the outputs. Throws InputError if there is no kernel of the operator, and if the node is wrong.
  virtual std::vector<Value> evaluate_node(const Node& node, int opset, const std::vector<Value>& inputs) const = 0;
};

// Returns the evaluator of the module, opened on demand. Throws InputError if the module is not there.
const NodeEvaluator& open_node_evaluator();

}  // namespace doppler::model
