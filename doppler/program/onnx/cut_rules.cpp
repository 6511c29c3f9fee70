#include "doppler/program/onnx/cut_rules.h"

#include "doppler/program/onnx/fold_rules.h"

namespace doppler::program {
namespace {

using Span = Stencil::Span;
using Spans = std::vector<Span>;

Spans whole(const Shape& dims) { return Spans(dims.size()); }

// Dimensions are right-aligned with the output's, as broadcasting goes, and read whole where the sizes differ.
Spans broadcast_spans(const Shape& dims, const Shape& out) {
  Spans spans = whole(dims);
  if (dims.size() > out.size()) return spans;
  const std::size_t skipped = out.size() - dims.size();
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] == out[skipped + i] && dims[i] > 1) spans[i] = Span::along(skipped + i);
  return spans;
}

// Dimension i goes with dimension i of the output, for the first `count`.
Spans aligned_spans(const Shape& dims, const Shape& out, std::size_t count) {
  Spans spans = whole(dims);
  for (std::size_t i = 0; i < std::min({dims.size(), out.size(), count}); ++i)
    if (dims[i] == out[i]) spans[i] = Span::along(i);
  return spans;
}

StencilRule starting(const ShapedOp& op, Spans first) {
  StencilRule rule;
  rule.operands.push_back({op.op.inputs[0], std::move(first)});
  rule.most_pieces = op.out;
  return rule;
}

void add_operand(StencilRule& rule, const ShapedOp& op, std::size_t slot, Spans spans) {
  if (op.has(slot)) rule.operands.push_back({op.op.inputs[slot], std::move(spans)});
}
void never_cut(StencilRule& rule, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < std::min(last, rule.most_pieces.size()); ++i) rule.most_pieces[i] = 1;
}

// With `same_shape`, inputs of another shape than the output's are read whole.
StencilRule aligned_with_output(const ShapedOp& op, bool same_shape) {
  StencilRule rule;
  rule.most_pieces = op.out;
  for (std::size_t slot = 0; slot < op.op.inputs.size(); ++slot) {
    const Shape dims = op.dims(slot);
    add_operand(rule, op, slot, dims == op.out || !same_shape ? broadcast_spans(dims, op.out) : whole(dims));
  }
  return rule;
}

// What is normalised over dimensions [axis, rank) has independent rows. Inputs of the same shape (a skip connection)
// go along.
StencilRule by_rows(const ShapedOp& op, Index axis) {
  const Shape dims = op.dims(0);
  const std::size_t rows = op.axis(axis, dims.size());
  StencilRule rule = starting(op, aligned_spans(dims, op.out, rows));
  never_cut(rule, rows, op.out.size());
  for (std::size_t slot = 1; slot < op.op.inputs.size(); ++slot)
    add_operand(rule, op, slot, op.dims(slot) == dims ? aligned_spans(dims, op.out, rows) : whole(op.dims(slot)));
  return rule;
}

// The input that fused convolutions and products add to their result.
constexpr std::size_t kResidual = 3;

// No real window is longer; products with positions stay far from overflow.
constexpr Index kLongestStep = Index{1} << 24;

// Adds what output positions [b, e) see of the input through windows that slide over dimensions 2 and up. Dimensions
// are read whole where the attributes are out of all proportion.
void add_windows(Spans& spans, const ShapedOp& op, const std::vector<Index>& kernel) {
  const Shape dims = op.dims(0);
  const std::size_t spatial = dims.size() - 2;
  const auto listed = [&](std::string_view name, Index otherwise) {
    std::vector<Index> values = ints_attribute(op.node(), name).value_or(std::vector<Index>());
    values.resize(std::max(values.size(), 2 * spatial), otherwise);
    return values;
  };
  const std::vector<Index> strides = listed("strides", 1), dilations = listed("dilations", 1), pads = listed("pads", 0);
  const std::string automatic = string_attribute(op.node(), "auto_pad", "NOTSET");
  for (std::size_t i = 0; i < spatial && i < kernel.size(); ++i) {
    const std::vector<Index> all = {strides[i], dilations[i], kernel[i], pads[i] + 1, op.out[i + 2], dims[i + 2]};
    const auto sane = [](Index value) { return value >= 1 && value <= kLongestStep; };
    if (!std::all_of(all.begin(), all.end(), sane)) continue;
    const Index extent = (kernel[i] - 1) * dilations[i] + 1;
    Index before = automatic == "VALID" ? 0 : pads[i];
    if (automatic.starts_with("SAME")) {
      const Index total = std::max<Index>(0, (op.out[i + 2] - 1) * strides[i] + extent - dims[i + 2]);
      before = automatic == "SAME_UPPER" ? total / 2 : (total + 1) / 2;
    }
    spans[i + 2] = {.axis = i + 2, .step = strides[i], .offset = -before, .extent = extent};
  }
}

// Returns the input channels that output channels [b, e) see: all where groups do not line up with single channels.
Span channels_seen(const Shape& weights, Index groups) {
  if (groups <= 1 || weights[0] < groups || weights[1] < 1) return {};
  const Index outputs = weights[0] / groups, inputs = weights[1];  // per group
  if (outputs == 1) return {.axis = 1, .step = inputs, .extent = inputs};
  return inputs == 1 ? Span{.axis = 1, .extent = 1, .divisor = outputs} : Span{};
}

// Without the given axes of the first input; no axes are all of them.
StencilRule without_axes(const ShapedOp& op, const std::optional<std::vector<Index>>& axes) {
  const Shape dims = op.dims(0);
  std::vector<char> reduced(dims.size(), 0);
  if (!axes || axes->empty()) reduced.assign(dims.size(), int_attribute(op.node(), "noop_with_empty_axes", 0) == 0);
  for (const Index given : axes.value_or(std::vector<Index>()))
    if (const std::size_t axis = op.axis(given, dims.size()); axis < dims.size()) reduced[axis] = 1;
  const bool keeps = op.out.size() == dims.size();
  Spans spans = whole(dims);
  std::size_t next = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!reduced[i] && next < op.out.size()) spans[i] = Span::along(next);
    if (!reduced[i] || keeps) ++next;
  }
  return starting(op, std::move(spans));
}

}  // namespace

namespace cuts {

MaybeRule elementwise(const ShapedOp& op) { return aligned_with_output(op, false); }

MaybeRule quantised(const ShapedOp& op) { return aligned_with_output(op, true); }

MaybeRule broadcast(const ShapedOp& op) { return starting(op, broadcast_spans(op.dims(0), op.out)); }

MaybeRule rows(const ShapedOp& op) { return by_rows(op, int_attribute(op.node(), "axis", -1)); }

MaybeRule softmax(const ShapedOp& op) {
  constexpr int kLastByDefault = 13;
  return by_rows(op, int_attribute(op.node(), "axis", op.op.opset < kLastByDefault ? 1 : -1));
}

MaybeRule by_channel(const ShapedOp& op, std::size_t independent) {
  StencilRule rule = starting(op, aligned_spans(op.dims(0), op.out, independent));
  never_cut(rule, independent, op.out.size());
  for (std::size_t slot = 1; slot < op.op.inputs.size(); ++slot) {
    const Shape dims = op.dims(slot);
    const bool channels = independent > 1 && dims.size() == 1 && op.out.size() > 1 && dims[0] == op.out[1];
    add_operand(rule, op, slot, channels ? Spans{Span::along(1)} : whole(dims));
  }
  return rule;
}

MaybeRule convolution(const ShapedOp& op, std::size_t weights, std::size_t bias) {
  const Shape dims = op.dims(0), kernel = op.dims(weights);
  if (dims.size() < 3 || kernel.size() != dims.size() || op.out.size() != dims.size()) return std::nullopt;
  Spans spans = whole(dims);
  spans[0] = Span::along(0);
  spans[1] = channels_seen(kernel, int_attribute(op.node(), "group", 1));
  add_windows(spans, op, {kernel.begin() + 2, kernel.end()});
  StencilRule rule = starting(op, std::move(spans));
  for (std::size_t slot = 1; slot < op.op.inputs.size(); ++slot) {
    Spans other = whole(op.dims(slot));
    if ((slot == weights || slot == bias) && !other.empty()) other[0] = Span::along(1);
    const bool residual = slot == kResidual && weights == 1 && op.dims(slot) == op.out;
    add_operand(rule, op, slot, residual ? aligned_spans(op.out, op.out, op.out.size()) : std::move(other));
  }
  return rule;
}

MaybeRule conv_transpose(const ShapedOp& op) {
  const Shape dims = op.dims(0), weights = op.dims(1);
  if (dims.size() < 3 || op.out.size() != dims.size() || weights.size() != dims.size()) return std::nullopt;
  Spans spans = whole(dims), other = whole(weights);
  spans[0] = Span::along(0);
  const bool one_group = int_attribute(op.node(), "group", 1) == 1;
  if (one_group) other[1] = Span::along(1);
  StencilRule rule = starting(op, std::move(spans));
  never_cut(rule, one_group ? 2 : 1, op.out.size());
  add_operand(rule, op, 1, std::move(other));
  add_operand(rule, op, 2, one_group ? Spans{Span::along(1)} : whole(op.dims(2)));
  return rule;
}

MaybeRule pool(const ShapedOp& op) {
  const Shape dims = op.dims(0);
  const std::vector<Index> kernel = ints_attribute(op.node(), "kernel_shape").value_or(std::vector<Index>());
  if (dims.size() < 3 || op.out.size() != dims.size() || kernel.size() + 2 != dims.size()) return std::nullopt;
  Spans spans = aligned_spans(dims, op.out, 2);
  add_windows(spans, op, kernel);
  return starting(op, std::move(spans));
}

MaybeRule global_pool(const ShapedOp& op) {
  StencilRule rule = starting(op, aligned_spans(op.dims(0), op.out, 2));
  never_cut(rule, 2, op.out.size());
  return rule;
}

MaybeRule matrix_product(const ShapedOp& op, std::size_t second) {
  const Shape a = op.dims(0), b = op.dims(second);
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  Spans left = broadcast_spans(a, op.out), right = broadcast_spans(b, op.out);
  left[a.size() - 1] = {};
  right[b.size() - 2] = {};
  left[a.size() - 2] = Span::along(op.out.size() - 2);
  right[b.size() - 1] = Span::along(op.out.size() - 1);
  StencilRule rule = starting(op, std::move(left));
  for (std::size_t slot = 1; slot < op.op.inputs.size(); ++slot)
    add_operand(rule, op, slot, slot == second ? right : whole(op.dims(slot)));
  return rule;
}

MaybeRule gemm(const ShapedOp& op) {
  if (op.dims(0).size() != 2 || op.dims(1).size() != 2 || op.out.size() != 2) return std::nullopt;
  const bool flipped_a = int_attribute(op.node(), "transA", 0) != 0;
  const bool flipped_b = int_attribute(op.node(), "transB", 0) != 0;
  Spans left(2), right(2);
  left[flipped_a ? 1 : 0] = Span::along(0);
  right[flipped_b ? 0 : 1] = Span::along(1);
  StencilRule rule = starting(op, std::move(left));
  add_operand(rule, op, 1, std::move(right));
  add_operand(rule, op, 2, broadcast_spans(op.dims(2), op.out));
  return rule;
}

MaybeRule fused_product(const ShapedOp& op) {
  const std::size_t rank = op.out.size();
  if (op.dims(0).size() < 2 || op.dims(1).size() < 2 || rank < 2) return std::nullopt;
  // By dimension of the operand as the product sees it, [batch…, row, column]: what it is in memory.
  const auto spans_of = [&](std::size_t slot, const char* flip, const char* flip_batch, bool first) {
    const Shape dims = op.dims(slot);
    std::vector<std::size_t> seen(dims.size());
    for (std::size_t i = 0; i < seen.size(); ++i) seen[i] = i;
    if (int_attribute(op.node(), flip_batch, 0) != 0) std::rotate(seen.begin(), seen.begin() + 1, seen.end() - 1);
    if (int_attribute(op.node(), flip, 0) != 0) std::swap(seen[seen.size() - 1], seen[seen.size() - 2]);
    Spans spans = whole(dims);
    for (std::size_t i = 0; i + 2 < seen.size(); ++i) {
      const std::size_t axis = rank - seen.size() + i;
      if (dims[seen[i]] == op.out[axis] && dims[seen[i]] > 1) spans[seen[i]] = Span::along(axis);
    }
    spans[first ? seen[seen.size() - 2] : seen.back()] = Span::along(first ? rank - 2 : rank - 1);
    return spans;
  };
  if (std::max(op.dims(0).size(), op.dims(1).size()) != rank) return std::nullopt;
  StencilRule rule = starting(op, spans_of(0, "transA", "transBatchA", true));
  add_operand(rule, op, 1, spans_of(1, "transB", "transBatchB", false));
  add_operand(rule, op, 2, broadcast_spans(op.dims(2), op.out));
  add_operand(rule, op, kResidual, broadcast_spans(op.dims(kResidual), op.out));
  return rule;
}

MaybeRule permuted_attention(const ShapedOp& op) {
  constexpr std::size_t kRank = 4, kHeads = 1, kRows = 2, kDepth = 3;  // of [batch, heads, rows, depth]
  if (op.out.size() != kRank) return std::nullopt;
  const auto order = [&](const char* name) {
    std::vector<Index> given = ints_attribute(op.node(), name).value_or(std::vector<Index>());
    return given.size() == kRank ? given : std::vector<Index>{0, 1, 2, 3};
  };
  std::vector<std::size_t> axis(kRank, 0);  // of the output, by dimension of the attention
  const std::vector<Index> order_out = order("perm_out");
  for (std::size_t i = 0; i < kRank; ++i) axis.at(static_cast<std::size_t>(order_out[i])) = i;
  const auto spans_of = [&](std::size_t slot, const char* name, std::size_t last) {
    const Shape dims = op.dims(slot);
    const std::vector<Index> seen = order(name);
    Spans spans = whole(dims);
    for (std::size_t i = 0; i <= last && dims.size() == kRank; ++i)
      if (const auto at = static_cast<std::size_t>(seen[i]); dims[at] == op.out[axis[i]] && dims[at] > 1)
        spans[at] = Span::along(axis[i]);
    return spans;
  };
  StencilRule rule = starting(op, spans_of(0, "perm_q", kRows));
  add_operand(rule, op, 1, spans_of(1, "perm_k", kHeads));
  add_operand(rule, op, 2, spans_of(2, "perm_v", kHeads));
  const Shape mask = op.dims(3);
  Spans mask_spans = whole(mask);
  for (std::size_t i = 0; i < mask.size() && mask.size() <= kRank; ++i)
    if (const std::size_t seen = kRank - mask.size() + i; seen < kDepth && mask[i] > 1)
      mask_spans[i] = Span::along(axis[seen]);
  add_operand(rule, op, 3, std::move(mask_spans));
  never_cut(rule, axis[kDepth], axis[kDepth] + 1);
  return rule;
}

MaybeRule reduction(const ShapedOp& op) {
  std::optional<std::vector<Index>> axes = ints_attribute(op.node(), "axes");
  if (!axes && op.has(1)) axes = op.constant(1);
  if (!axes && op.has(1)) return std::nullopt;
  return without_axes(op, axes);
}

MaybeRule position(const ShapedOp& op) {
  return without_axes(op, std::vector<Index>{int_attribute(op.node(), "axis", 0)});
}

MaybeRule transpose(const ShapedOp& op) {
  const Shape dims = op.dims(0);
  std::vector<Index> order = ints_attribute(op.node(), "perm").value_or(std::vector<Index>());
  if (order.empty())
    for (std::size_t i = dims.size(); i-- > 0;) order.push_back(static_cast<Index>(i));
  if (order.size() != dims.size()) return std::nullopt;
  Spans spans = whole(dims);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || order[i] >= static_cast<Index>(dims.size())) return std::nullopt;
    spans[static_cast<std::size_t>(order[i])] = Span::along(i);
  }
  return starting(op, std::move(spans));
}

MaybeRule slice(const ShapedOp& op) {
  const Shape dims = op.dims(0);
  std::vector<const Constant*> arguments(op.op.inputs.size(), nullptr);
  for (std::size_t slot = 1; slot < arguments.size(); ++slot) {
    if (!op.has(slot)) continue;
    if (!op.value(slot).constant) return std::nullopt;
    arguments[slot] = &*op.value(slot).constant;
  }
  const auto ranges = slice_ranges(op.node(), dims, arguments);
  if (!ranges || op.out.size() != dims.size()) return std::nullopt;
  Spans spans = whole(dims);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto& [start, step] = (*ranges)[i];
    if (step >= 1 && step <= dims[i]) spans[i] = {.axis = i, .step = step, .offset = start, .extent = 1};
  }
  return starting(op, std::move(spans));
}

MaybeRule concat(const ShapedOp& op) {
  StencilRule rule;
  rule.most_pieces = op.out;
  const std::size_t axis = op.axis(int_attribute(op.node(), "axis", 1), op.out.size());
  if (axis >= op.out.size()) return std::nullopt;
  Index begin = 0;
  for (std::size_t slot = 0; slot < op.op.inputs.size(); ++slot) {
    const Shape dims = op.dims(slot);
    if (dims.size() != op.out.size()) return std::nullopt;
    Spans spans = aligned_spans(dims, op.out, dims.size());
    spans[axis] = {.axis = axis, .offset = -begin, .extent = 1};
    add_operand(rule, op, slot, std::move(spans));
    begin += dims[axis];
  }
  return rule;
}

MaybeRule split(const ShapedOp& op) {
  const Shape dims = op.dims(0);
  const std::size_t axis = op.axis(int_attribute(op.node(), "axis", 0), dims.size());
  if (axis >= dims.size() || op.out.size() != dims.size()) return std::nullopt;
  Index begin = 0;
  for (std::size_t i = 0; i < op.output; ++i)
    if (const ValueId id = op.op.outputs[i]; id != kNone)
      begin += dims_of(op.reading.values[id].type).value_or(Shape(dims.size(), 0))[axis];
  Spans spans = aligned_spans(dims, op.out, dims.size());
  spans[axis] = {.axis = axis, .offset = begin, .extent = 1};
  return starting(op, std::move(spans));
}

MaybeRule pad(const ShapedOp& op) {
  const Shape dims = op.dims(0);
  std::optional<std::vector<Index>> pads = ints_attribute(op.node(), "pads");
  if (!pads) pads = op.constant(1);
  if (!pads || pads->size() != 2 * dims.size() || op.has(3)) return std::nullopt;
  const bool constant = string_attribute(op.node(), "mode", "constant") == "constant";
  Spans spans = whole(dims);
  for (std::size_t i = 0; i < dims.size(); ++i)
    if ((constant || dims[i] == op.out[i]) && std::abs((*pads)[i]) <= kLongestStep)
      spans[i] = {.axis = i, .offset = -(*pads)[i], .extent = 1};
  return starting(op, std::move(spans));
}

MaybeRule gather(const ShapedOp& op) {
  const Shape data = op.dims(0), indices = op.dims(1);
  const std::size_t axis = op.axis(int_attribute(op.node(), "axis", 0), data.size());
  if (axis >= data.size() || op.out.size() != data.size() + indices.size() - 1) return std::nullopt;
  Spans spans = whole(data), index_spans = whole(indices);
  for (std::size_t i = 0; i < data.size(); ++i)
    if (i != axis) spans[i] = Span::along(i < axis ? i : i + indices.size() - 1);
  for (std::size_t i = 0; i < indices.size(); ++i) index_spans[i] = Span::along(axis + i);
  StencilRule rule = starting(op, std::move(spans));
  add_operand(rule, op, 1, std::move(index_spans));
  rule.read = op.op.cost.read;
  return rule;
}

// Interpolation looks one or two elements to either side.
MaybeRule resize(const ShapedOp& op) {
  const Shape dims = op.dims(0);
  if (dims.size() != op.out.size()) return std::nullopt;
  const Index reach = string_attribute(op.node(), "mode", "nearest") == "cubic" ? 2 : 1;
  Spans spans = whole(dims);
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] == op.out[i])
      spans[i] = Span::along(i);
    else if (dims[i] <= kLongestStep && op.out[i] >= 1 && op.out[i] <= kLongestStep)
      spans[i] = Span{.axis = i,
                      .step = dims[i],
                      .offset = -reach * op.out[i],
                      .extent = dims[i] + 2 * reach * op.out[i],
                      .divisor = op.out[i]};
  return starting(op, std::move(spans));
}

}  // namespace cuts

std::optional<std::vector<Index>> ShapedOp::constant(std::size_t slot) const {
  if (!has(slot) || !value(slot).constant) return std::nullopt;
  std::vector<Index> result;
  for (std::size_t i = 0; i < value(slot).constant->values.size(); ++i)
    result.push_back(value(slot).constant->as_index(i));
  return result;
}

std::optional<StencilRule> stencil_rule(const Reading& reading, const ModelOp& op, std::size_t output) {
  if (op.whole || op.inputs.empty() || op.inputs[0] == kNone || op.outputs[output] == kNone) return std::nullopt;
  if (op.rules->cut == nullptr || (output > 0 && !op.rules->traits.each_output)) return std::nullopt;
  return op.rules->cut({reading, op, output, dims_of(reading.values[op.outputs[output]].type).value_or(Shape())});
}

StencilRule reshape_rule(ValueId value, const Shape& from, const Shape& to) {
  StencilRule rule;
  rule.most_pieces.assign(to.size(), 1);
  Spans spans = whole(from);
  // Dimensions belong together from where both products agree to where they agree again.
  std::size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    if (from[i] == 1 || to[j] == 1) {
      from[i] == 1 ? ++i : ++j;
      continue;
    }
    const std::size_t first_in = i, first_out = j;
    Index in = from[i++], out = to[j++];
    while (in != out && (in < out ? i < from.size() : j < to.size())) in < out ? in *= from[i++] : out *= to[j++];
    if (in != out) break;                                                   // sizes of 0, which became 1
    const Index step = out / to[first_out], divisor = in / from[first_in];  // elements per index
    spans[first_in] = {.axis = first_out, .step = step, .extent = step, .divisor = divisor};
    rule.most_pieces[first_out] = to[first_out];
  }
  rule.operands.push_back({value, std::move(spans)});
  return rule;
}

}  // namespace doppler::program
