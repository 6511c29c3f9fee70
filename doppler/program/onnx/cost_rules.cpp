#include "doppler/program/onnx/cost_rules.h"

#include <algorithm>
#include <cmath>

#include "doppler/program/onnx/equation.h"

namespace doppler::program::costs {
namespace {

double at(const Shape& dims, std::ptrdiff_t from_end) {
  const auto rank = static_cast<std::ptrdiff_t>(dims.size());
  return from_end >= 1 && from_end <= rank ? static_cast<double>(dims[static_cast<std::size_t>(rank - from_end)]) : 1;
}

Shape output_dims(const TypedNode& op) { return dims_of(op.outputs[0]).value_or(Shape()); }

// X[positions, batch, in] (or batch first) goes through cells of W[directions, gates·hidden, in] and
// R[directions, gates·hidden, hidden], with `functions` per hidden element and step besides the products.
Arithmetic recurrent(const TypedNode& op, double functions) {
  const Shape x = op.dims(0);
  const double steps = at(x, 3) * at(x, 2), hidden = at(op.dims(2), 1);
  const double directions = at(op.dims(1), 3);
  return {steps * (op.in(1) + op.in(2)), steps * directions * hidden * functions};
}

double window(const onnx::NodeProto& node) {
  double size = 1;
  for (const Index length : ints_attribute(node, "kernel_shape").value_or(std::vector<Index>()))
    size *= static_cast<double>(length);
  return size;
}

// Returns how many samples an output element of an interpolation reads, with one multiply-add each.
double samples(const TypedNode& op) {
  const std::string mode = string_attribute(op.node, "mode", "nearest");
  if (mode == "nearest") return 0;
  const Shape in = op.dims(0), out = output_dims(op);
  double count = 1;
  for (std::size_t i = 0; i < std::min(in.size(), out.size()); ++i)
    if (in[i] != out[i]) count *= mode == "cubic" ? 4 : 2;
  return count;
}

// Bias and residual take a flop each, an activation counts as one more.
double epilogue(const TypedNode& op) {
  return ((op.has(2) ? 1 : 0) + (op.has(3) ? 1 : 0) + (find_attribute(op.node, "activation") != nullptr ? 1 : 0)) *
         op.out();
}

}  // namespace

Arithmetic nothing(const TypedNode&) { return {}; }

Arithmetic variadic(const TypedNode& op) { return {0, static_cast<double>(op.inputs.size()) * op.out()}; }

Arithmetic convolution(const TypedNode& op, std::size_t weights, std::size_t bias) {
  const double per_output = op.in(weights) / std::max(1.0, at(op.dims(weights), std::ssize(op.dims(weights))));
  return {op.out() * per_output, op.has(bias) ? op.out() : 0};
}

Arithmetic conv_transpose(const TypedNode& op) {
  const double per_input = op.in(1) / std::max(1.0, at(op.dims(1), std::ssize(op.dims(1))));
  return {op.in(0) * per_input, op.has(2) ? op.out() : 0};
}

Arithmetic matmul(const TypedNode& op) { return {op.out() * at(op.dims(0), 1), 0}; }

Arithmetic transposed_matmul(const TypedNode& op) {
  Shape a = op.dims(0);
  if (int_attribute(op.node, "transBatchA", 0) != 0) a = with_batch_first(std::move(a));
  return {op.out() * at(a, int_attribute(op.node, "transA", 0) != 0 ? 2 : 1), 0};
}

Arithmetic fused_matmul(const TypedNode& op) {
  Arithmetic result = transposed_matmul(op);
  result.flops = epilogue(op);
  return result;
}

Arithmetic fused_conv(const TypedNode& op) {
  Arithmetic result = convolution(op, 1, kNoSlot);
  result.flops = epilogue(op);
  return result;
}

Arithmetic permuted_attention(const TypedNode& op) {
  const Shape q = permuted(op.dims(0), ints_attribute(op.node, "perm_q"));
  const Shape k = permuted(op.dims(1), ints_attribute(op.node, "perm_k"));
  const double scores = at(q, 4) * at(q, 3) * at(q, 2) * at(k, 2);
  return {scores * at(q, 1) + op.out() * at(k, 2), (op.has(3) ? 6 : 5) * scores};
}

Arithmetic gemm(const TypedNode& op) {
  Arithmetic result = transposed_matmul(op);
  result.flops = op.has(2) ? op.out() : 0;
  return result;
}

Arithmetic einsum(const TypedNode& op) {
  std::vector<Shape> shapes;
  for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) shapes.push_back(op.dims(slot));
  double space = 1;
  for (const auto& [label, size] : parse_equation(op.node, shapes).sizes) space *= static_cast<double>(size);
  const auto operands = static_cast<double>(shapes.size());
  return operands > 1 ? Arithmetic{space * (operands - 1), 0} : Arithmetic{0, space};
}

// What counts are gates and cell updates: σσσ tanh, c = f·c + i·g, h = o·tanh c, and adding the two products of 4
// gates.
Arithmetic lstm(const TypedNode& op) { return recurrent(op, 3 * 3 + 2 + 4 + 4 + 4); }
Arithmetic gru(const TypedNode& op) { return recurrent(op, 2 * 3 + 1 + 5 + 3 + 3); }
Arithmetic rnn(const TypedNode& op) { return recurrent(op, 3); }

Arithmetic attention(const TypedNode& op) {
  const double queries = op.in(0) / std::max(1.0, at(op.dims(0), 1));
  const double keys = at(op.dims(1), 2), width = at(op.dims(0), 1);
  return {2 * queries * keys * width, 5 * queries * keys};
}

Arithmetic projected_attention(const TypedNode& op) {
  const Shape x = op.dims(0);
  const double batch = at(x, 3), positions = at(x, 2), hidden = at(op.dims(1), 1) / 3;
  const double scores = batch * positions * positions;
  return {batch * positions * op.in(1) + 2 * scores * hidden, 5 * scores};
}

Arithmetic windows(const TypedNode& op, double per_element) { return {0, per_element * op.out() * window(op.node)}; }

Arithmetic local_response(const TypedNode& op) {
  return {0, op.in(0) * (2 * static_cast<double>(int_attribute(op.node, "size", 1)) + 3)};
}

Arithmetic log_likelihood(const TypedNode& op) { return {0, 2 * op.in(1)}; }

Arithmetic top_k(const TypedNode& op) { return {0, op.in(0) * std::max(1.0, std::log2(at(output_dims(op), 1) + 1))}; }

Arithmetic fourier(const TypedNode& op) {
  return {0, 2.5 * op.out() * std::max(1.0, std::log2(at(output_dims(op), 2)))};
}

Arithmetic determinant(const TypedNode& op) { return {op.in(0) * at(op.dims(0), 1) / 3, 0}; }

Arithmetic suppression(const TypedNode& op) { return {0, 12 * op.in(0) / 4 * at(op.dims(0), 2)}; }

Arithmetic resize(const TypedNode& op) { return {0, 2 * samples(op) * op.out()}; }

}  // namespace doppler::program::costs
