#pragma once

#include "doppler/program/onnx/proto.h"

// How much arithmetic operators take: each function is a CostRule of the operator table.

namespace doppler::program {

// A node with its complete types. Inputs are null where absent.
struct TypedNode {
  const onnx::NodeProto& node;
  const std::vector<const onnx::TypeProto*>& inputs;
  const std::vector<onnx::TypeProto>& outputs;

  bool has(std::size_t slot) const { return slot < inputs.size() && inputs[slot] != nullptr; }
  double in(std::size_t slot) const { return has(slot) ? static_cast<double>(elements(*inputs[slot])) : 0; }
  double out(std::size_t slot = 0) const {
    return slot < outputs.size() ? static_cast<double>(elements(outputs[slot])) : 0;
  }
  Shape dims(std::size_t slot) const { return has(slot) ? dims_of(*inputs[slot]).value_or(Shape()) : Shape(); }
};

struct Arithmetic {
  double macs = 0, flops = 0;  // flops beyond 2·macs
};

inline constexpr std::size_t kNoSlot = 99;  // of an input that an operator does not have

namespace costs {

Arithmetic nothing(const TypedNode& op);
template <int N>
Arithmetic per_output(const TypedNode& op) {
  return {0, N * op.out()};
}
template <int N>
Arithmetic per_input(const TypedNode& op) {
  return {0, N * op.in(0)};
}
// One flop per input for each output element.
Arithmetic variadic(const TypedNode& op);

// Every output element is a sum over the weights of its channel: W is [channels out, channels in / groups, window].
Arithmetic convolution(const TypedNode& op, std::size_t weights, std::size_t bias);
template <std::size_t Weights, std::size_t Bias = kNoSlot>
Arithmetic conv(const TypedNode& op) {
  return convolution(op, Weights, Bias);
}
// Every input element meets the weights of its channel: W is [channels in, channels out / groups, window].
Arithmetic conv_transpose(const TypedNode& op);
Arithmetic matmul(const TypedNode& op);
Arithmetic transposed_matmul(const TypedNode& op);
// The same, and a convolution, with what rewrites have put into them: bias, residual and activation.
Arithmetic fused_matmul(const TypedNode& op);
Arithmetic fused_conv(const TypedNode& op);
// Computes softmax(Q·Kᵀ)·V of tensors [batch, heads, rows, depth] that are read through transposes.
Arithmetic permuted_attention(const TypedNode& op);
Arithmetic gemm(const TypedNode& op);
// Takes one pass over the space of all labels per operand beyond the first.
Arithmetic einsum(const TypedNode& op);
Arithmetic lstm(const TypedNode& op);
Arithmetic gru(const TypedNode& op);
Arithmetic rnn(const TypedNode& op);
// Computes softmax(Q·Kᵀ)·V with Q, K and V of [batch, …, positions, width].
Arithmetic attention(const TypedNode& op);
// Computes the same after Q, K and V are projected from X[batch, positions, in] by W[in, 3·hidden].
Arithmetic projected_attention(const TypedNode& op);

// Takes `per_element` flops for every element of every window.
Arithmetic windows(const TypedNode& op, double per_element);
template <int N>
Arithmetic pool(const TypedNode& op) {
  return windows(op, N);
}
Arithmetic local_response(const TypedNode& op);
Arithmetic log_likelihood(const TypedNode& op);
// Takes a sort network of k per element; real ones do less.
Arithmetic top_k(const TypedNode& op);
// A fast Fourier transform takes about 5 n log n.
Arithmetic fourier(const TypedNode& op);
// A determinant takes a third of n³ multiply-adds.
Arithmetic determinant(const TypedNode& op);
// Every box meets every other of its batch: four comparisons and a handful of products for the overlap.
Arithmetic suppression(const TypedNode& op);
// Takes two flops per sample that an interpolated element reads.
Arithmetic resize(const TypedNode& op);

}  // namespace costs
}  // namespace doppler::program
