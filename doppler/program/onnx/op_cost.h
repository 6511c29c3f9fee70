#pragma once

#include "doppler/program/onnx/proto.h"

namespace doppler::program {

// What a node does when it runs. Arithmetic counts as in doppler/program: one per operation or function on an
// element (exp is one), and a multiply-add is two flops, one mac.
struct OpCost {
  Flops flops = 0;
  double macs = 0;              // multiply-adds of matrix products, convolutions and recurrent cells
  Bytes read = 0, written = 0;  // memory traffic
  bool known = true;            // false: we have no formula, and count bytes only

  void operator+=(const OpCost& other);
  OpCost times(double count) const;
};

// The formulas stand in op_cost.cpp, one table. Types are complete; inputs are null where absent.
OpCost cost_of(const onnx::NodeProto& node, const std::vector<const onnx::TypeProto*>& inputs,
               const std::vector<onnx::TypeProto>& outputs);

// "matmul", "conv", or the operator's own name: what a machine's rates and a reader's tables go by.
std::string kind_of(const onnx::NodeProto& node);
bool is_matrix_product(const onnx::NodeProto& node);
// Element by element, with broadcasting.
bool is_elementwise(const onnx::NodeProto& node);

// The output is the first input under another shape or name: nothing is computed or moved.
bool is_view(const onnx::NodeProto& node, const onnx::TypeProto& input);

}  // namespace doppler::program
