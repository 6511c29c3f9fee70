#include "doppler/program/onnx/shape_rules.h"

#include "doppler/program/onnx/equation.h"

namespace doppler::program::shapes {
namespace {

using onnx::NodeProto;
using onnx::TypeProto;
using MaybeShape = std::optional<Shape>;

MaybeShape dims_at(const NodeInputs& inputs, std::size_t slot) {
  return slot < inputs.types.size() && inputs.types[slot] != nullptr ? dims_of(*inputs.types[slot]) : std::nullopt;
}

MaybeShape broadcast_of(const std::vector<const TypeProto*>& inputs) {
  Shape result;
  for (const TypeProto* input : inputs) {
    if (input == nullptr) continue;
    const MaybeShape dims = dims_of(*input);
    if (!dims) return std::nullopt;
    if (dims->size() > result.size()) result.insert(result.begin(), dims->size() - result.size(), 1);
    const std::size_t skipped = result.size() - dims->size();
    for (std::size_t i = 0; i < dims->size(); ++i) {
      Index& size = result[skipped + i];
      if (size == 1) size = (*dims)[i];
      if (size == kUnknown && (*dims)[i] > 1) size = (*dims)[i];
    }
  }
  return result;
}

MaybeShape matrix_product(MaybeShape a, MaybeShape b, bool transpose_a, bool transpose_b) {
  if (!a || !b || a->size() < 2 || b->size() < 2) return std::nullopt;
  if (transpose_a) std::swap((*a)[a->size() - 1], (*a)[a->size() - 2]);
  if (transpose_b) std::swap((*b)[b->size() - 1], (*b)[b->size() - 2]);
  const TypeProto batch_a = tensor_type(1, Shape(a->begin(), a->end() - 2));
  const TypeProto batch_b = tensor_type(1, Shape(b->begin(), b->end() - 2));
  MaybeShape result = broadcast_of({&batch_a, &batch_b});
  result->push_back((*a)[a->size() - 2]);
  result->push_back(b->back());
  return result;
}

}  // namespace

MaybeShape as_first(const NodeProto&, const NodeInputs& inputs) { return dims_at(inputs, 0); }

MaybeShape broadcast(const NodeProto&, const NodeInputs& inputs) { return broadcast_of(inputs.types); }

MaybeShape quantised_broadcast(const NodeProto&, const NodeInputs& inputs) {
  if (!dims_at(inputs, 0) || !dims_at(inputs, 3)) return std::nullopt;
  return broadcast_of({inputs.types[0], inputs.types[3]});
}

MaybeShape product(const NodeProto&, const NodeInputs& inputs) {
  return matrix_product(dims_at(inputs, 0), dims_at(inputs, 1), false, false);
}

MaybeShape transposed_product(const NodeProto& node, const NodeInputs& inputs) {
  MaybeShape a = dims_at(inputs, 0), b = dims_at(inputs, 1);
  if (a && int_attribute(node, "transBatchA", 0) != 0) a = with_batch_first(std::move(*a));
  if (b && int_attribute(node, "transBatchB", 0) != 0) b = with_batch_first(std::move(*b));
  return matrix_product(std::move(a), std::move(b), int_attribute(node, "transA", 0) != 0,
                        int_attribute(node, "transB", 0) != 0);
}

MaybeShape permuted_attention(const NodeProto& node, const NodeInputs& inputs) {
  constexpr std::size_t kRank = 4;
  MaybeShape q = dims_at(inputs, 0), v = dims_at(inputs, 2);
  if (!q || !v || q->size() != kRank || v->size() != kRank) return std::nullopt;
  Shape result = permuted(*q, ints_attribute(node, "perm_q"));
  result[3] = permuted(*v, ints_attribute(node, "perm_v"))[3];
  return permuted(result, ints_attribute(node, "perm_out"));
}

MaybeShape packed_product(const NodeProto& node, const NodeInputs& inputs) {
  MaybeShape result = dims_at(inputs, 0);
  if (!result || result->empty()) return std::nullopt;
  result->back() = int_attribute(node, "N", kUnknown);
  return result;
}

MaybeShape equation(const NodeProto& node, const NodeInputs& inputs) {
  std::vector<Shape> operands;
  for (const TypeProto* type : inputs.types) {
    if (type == nullptr || !is_tensor(*type) || !is_complete(*type)) return std::nullopt;
    operands.push_back(*dims_of(*type));
  }
  const Equation parsed = parse_equation(node, operands);
  Shape result;
  for (const std::string& label : parsed.output) result.push_back(parsed.sizes.at(label));
  return result;
}

MaybeShape projected_attention(const NodeProto&, const NodeInputs& inputs) {
  const MaybeShape data = dims_at(inputs, 0), weights = dims_at(inputs, 1);
  if (!data || data->size() != 3 || !weights || weights->size() != 2) return std::nullopt;
  return Shape{(*data)[0], (*data)[1], (*weights)[1] == kUnknown ? kUnknown : (*weights)[1] / 3};
}

}  // namespace doppler::program::shapes
