#pragma once

#include <algorithm>

#include "doppler/program/expr/program.h"
#include "doppler/program/onnx/cost_rules.h"
#include "doppler/program/onnx/reading.h"

// Which part of its inputs a block of an op's output reads: each function in `cuts` is a CutRule of the operator table.

namespace doppler::program {

// How blocks of one of an op's outputs depend on its inputs.
struct StencilRule {
  struct Operand {
    ValueId value;
    std::vector<Stencil::Span> spans;
  };
  std::vector<Operand> operands;
  std::vector<Index> most_pieces;
  std::optional<Bytes> read = std::nullopt;
};

// An op with its shapes.
struct ShapedOp {
  const Reading& reading;
  const ModelOp& op;
  std::size_t output;
  Shape out;  // of that output

  const onnx::NodeProto& node() const { return *op.node; }
  bool has(std::size_t slot) const { return slot < op.inputs.size() && op.inputs[slot] != kNone; }
  const ModelValue& value(std::size_t slot) const { return reading.values[op.inputs[slot]]; }
  Shape dims(std::size_t slot) const { return has(slot) ? dims_of(value(slot).type).value_or(Shape()) : Shape(); }
  std::size_t axis(Index given, std::size_t rank) const {
    return static_cast<std::size_t>(
        std::clamp<Index>(given < 0 ? given + static_cast<Index>(rank) : given, 0, static_cast<Index>(rank)));
  }
  std::optional<std::vector<Index>> constant(std::size_t slot) const;
};

// Returns nothing for ops that stay whole. `output` is the index of one of the op's outputs.
std::optional<StencilRule> stencil_rule(const Reading& reading, const ModelOp& op, std::size_t output);
// Says in `rule` what kernels cannot compute block by block: dimensions whose blocks would need more than the node
// itself on parts of its inputs are not cut, nor are those along which no layout has blocks that lie together.
void keep_to_kernels(const ShapedOp& op, StencilRule& rule);
// Returns the rule of a reshape: the first dimension of every group of dimensions that belong together may be cut.
StencilRule reshape_rule(ValueId value, const Shape& from, const Shape& to);

namespace cuts {

using MaybeRule = std::optional<StencilRule>;

MaybeRule elementwise(const ShapedOp& op);
// Scales and zero points, which may be per channel, are read whole.
MaybeRule quantised(const ShapedOp& op);
MaybeRule broadcast(const ShapedOp& op);

// What is normalised from an axis on has independent rows.
MaybeRule rows(const ShapedOp& op);
MaybeRule softmax(const ShapedOp& op);
// The first `independent` dimensions may be cut; dimension 1 is the channel, which scale, bias and statistics have
// alone.
MaybeRule by_channel(const ShapedOp& op, std::size_t independent);
inline constexpr std::size_t kAllDimensions = 99;
template <std::size_t Independent = kAllDimensions>
MaybeRule channels(const ShapedOp& op) {
  return by_channel(op, Independent);
}

MaybeRule convolution(const ShapedOp& op, std::size_t weights, std::size_t bias);
template <std::size_t Weights, std::size_t Bias = kNoSlot>
MaybeRule conv(const ShapedOp& op) {
  return convolution(op, Weights, Bias);
}
MaybeRule conv_transpose(const ShapedOp& op);
MaybeRule pool(const ShapedOp& op);
MaybeRule global_pool(const ShapedOp& op);

// Cuts a[…, m, k] · b[…, k, n] for products that are no einsum: quantised ones, and stacks that broadcast.
MaybeRule matrix_product(const ShapedOp& op, std::size_t second);
template <std::size_t Second>
MaybeRule product(const ShapedOp& op) {
  return matrix_product(op, Second);
}

// The sum is never cut, unlike that of an einsum: bias, residual and activation follow it.
MaybeRule gemm(const ShapedOp& op);
MaybeRule fused_product(const ShapedOp& op);
// By batch, heads and rows of the queries; keys and values are read whole.
MaybeRule permuted_attention(const ShapedOp& op);

MaybeRule reduction(const ShapedOp& op);
// Finds the position of the largest or smallest element along one axis.
MaybeRule position(const ShapedOp& op);

MaybeRule transpose(const ShapedOp& op);
MaybeRule slice(const ShapedOp& op);
MaybeRule concat(const ShapedOp& op);
MaybeRule split(const ShapedOp& op);
MaybeRule pad(const ShapedOp& op);
MaybeRule gather(const ShapedOp& op);
MaybeRule resize(const ShapedOp& op);

}  // namespace cuts
}  // namespace doppler::program
