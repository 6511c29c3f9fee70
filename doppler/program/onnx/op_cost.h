#pragma once

#include "doppler/program/onnx/operators.h"

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

// Types are complete; inputs are null where absent.
OpCost cost_of(const Operator& op, const onnx::NodeProto& node, const std::vector<const onnx::TypeProto*>& inputs,
               const std::vector<onnx::TypeProto>& outputs);

}  // namespace doppler::program
