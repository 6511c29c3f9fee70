#pragma once

#include "doppler/program/onnx/infer.h"

// Shapes of outputs where libonnx ends: operators that came later, old operator sets, the fused operators of ONNX
// Runtime. Each is a ShapeRule of the operator table; the first input is there.

namespace doppler::program::shapes {

std::optional<Shape> as_first(const onnx::NodeProto& node, const NodeInputs& inputs);
std::optional<Shape> broadcast(const onnx::NodeProto& node, const NodeInputs& inputs);
// The operands of quantised arithmetic are inputs 0 and 3; scales and zero points stand between them.
std::optional<Shape> quantised_broadcast(const onnx::NodeProto& node, const NodeInputs& inputs);
// The factors are a[…, m, k] and b[…, k, n].
std::optional<Shape> product(const onnx::NodeProto& node, const NodeInputs& inputs);
// Attributes transA and transB say which of the factors is transposed, transBatchA and transBatchB which of them has its
// rows before the batch.
std::optional<Shape> transposed_product(const onnx::NodeProto& node, const NodeInputs& inputs);
// The second factor is packed, so that an attribute says how wide it is.
std::optional<Shape> packed_product(const onnx::NodeProto& node, const NodeInputs& inputs);
// The node has an equation, of which libonnx finds the rank only.
std::optional<Shape> equation(const onnx::NodeProto& node, const NodeInputs& inputs);
// The weights are [width, 3·hidden] and the output is [batch, positions, hidden].
std::optional<Shape> projected_attention(const onnx::NodeProto& node, const NodeInputs& inputs);

// The inputs are read through the transposes perm_q and perm_v, and perm_out is one of the output.
std::optional<Shape> permuted_attention(const onnx::NodeProto& node, const NodeInputs& inputs);

}  // namespace doppler::program::shapes
