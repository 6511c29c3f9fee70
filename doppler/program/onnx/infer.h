#pragma once

#include "doppler/program/onnx/operators.h"

namespace doppler::program {

// A node is given the types of its inputs and, where known, their values. Both are null where absent or unknown.
struct NodeInputs {
  std::vector<const onnx::TypeProto*> types;
  std::vector<const Constant*> values;
};

struct Inferred {
  std::vector<onnx::TypeProto> outputs;  // one per output; empty types and unknown dimensions where nothing is known
  std::string complaint;                 // what the inference says is wrong; empty if nothing
};

// Infers types and shapes of the outputs by the rules of libonnx, and where those end by those of the operator table.
Inferred infer_types(const Operator& op, const onnx::NodeProto& node, int opset, const NodeInputs& inputs);

}  // namespace doppler::program
