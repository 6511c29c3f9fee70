#include <algorithm>

#include "doppler/program/onnx/cut_rules.h"

// Which cuts kernels can follow. A block of most ops is the node itself on parts of its inputs; what more a block of
// some needs (the padding of its own windows, a constant that speaks of shapes) is in kernels/onnx/block_node.cpp.

namespace doppler::program {
namespace {

using Span = Stencil::Span;

constexpr std::size_t kChannel = 1, kSpace = 2;

void never_cut_at(StencilRule& rule, std::size_t axis) {
  if (axis < rule.most_pieces.size()) rule.most_pieces[axis] = 1;
}

// Whether the input has more than one element: a scale or zero point per channel, which rules read whole.
bool is_several(const ShapedOp& op, std::size_t slot) { return op.has(slot) && product(op.dims(slot)) > 1; }

// Every window of the output must see an element of the input, so that no block is made of padding alone.
bool windows_meet_input(const Span& span, Index in, Index out) {
  return -span.offset < span.extent && (out - 1) * span.step + span.offset < in;
}

void keep_windows(const ShapedOp& op, StencilRule& rule) {
  std::vector<Span>& spans = rule.operands[0].spans;
  const Shape dims = op.dims(0);
  const bool padded_ceiling =
      int_attribute(op.node(), "ceil_mode", 0) != 0 && int_attribute(op.node(), "count_include_pad", 0) != 0;
  for (std::size_t i = kSpace; i < op.out.size(); ++i) {
    // Rows lie together with channels last; columns never do.
    const bool rows = i == kSpace && spans[i].axis && windows_meet_input(spans[i], dims[i], op.out[i]);
    if (rows && !padded_ceiling) continue;
    never_cut_at(rule, i);
    spans[i] = {};  // whole, also where windows of a larger stride pass over the last column: it lies in between
  }
}

void keep_convolution(const ShapedOp& op, StencilRule& rule) {
  const std::string name = operator_name(op.node());
  const std::size_t weights = name == "QLinearConv" ? 3 : 1;
  const Index groups = int_attribute(op.node(), "group", 1);
  const bool by_channel = op.dims(weights)[0] == groups;
  // Blocks of several channels of several groups would have groups of unequal size.
  if (groups > 1 && !by_channel) never_cut_at(rule, kChannel);
  if (name == "QLinearConv" && (is_several(op, 4) || is_several(op, 5))) never_cut_at(rule, kChannel);
  if (name == "ConvInteger" && is_several(op, 3)) never_cut_at(rule, kChannel);
  keep_windows(op, rule);
}

// What is moved to other places along a dimension is not cut there.
void keep_moved(const ShapedOp& op, StencilRule& rule) {
  const Shape dims = op.dims(0);
  for (std::size_t i = 0; i < op.out.size() && i < dims.size(); ++i)
    if (dims[i] != op.out[i] || !rule.operands[0].spans[i].axis) never_cut_at(rule, i);
}

void keep_slice(const ShapedOp& op, StencilRule& rule) {
  const std::vector<Span>& spans = rule.operands[0].spans;
  const bool backwards = std::any_of(spans.begin(), spans.end(), [](const Span& span) { return !span.axis; });
  for (std::size_t i = 0; i < op.out.size(); ++i)
    if (backwards) never_cut_at(rule, i);
}

void keep_resize(const ShapedOp& op, StencilRule& rule) {
  keep_moved(op, rule);
  const bool crops = string_attribute(op.node(), "coordinate_transformation_mode", "") == "tf_crop_and_resize";
  if (crops || find_attribute(op.node(), "axes") != nullptr || find_attribute(op.node(), "keep_aspect_ratio_policy"))
    std::fill(rule.most_pieces.begin(), rule.most_pieces.end(), 1);
}

void keep_quantised(const ShapedOp& op, StencilRule& rule) {
  if (is_several(op, 1) || is_several(op, 2))
    never_cut_at(rule, op.axis(int_attribute(op.node(), "axis", 1), op.out.size()));
}

void keep_integer_product(const ShapedOp& op, StencilRule& rule, std::initializer_list<std::size_t> scales) {
  for (const std::size_t slot : scales)
    if (is_several(op, slot)) std::fill(rule.most_pieces.begin(), rule.most_pieces.end(), 1);
}

}  // namespace

void keep_to_kernels(const ShapedOp& op, StencilRule& rule) {
  const std::string name = operator_name(op.node());
  if (op.op.rules->is == OperatorClass::convolution && name != "ConvTranspose") return keep_convolution(op, rule);
  if (name == "MaxPool" || name == "AveragePool" || name == "LpPool") return keep_windows(op, rule);
  if (name == "Pad") return keep_moved(op, rule);
  if (name == "Slice") return keep_slice(op, rule);
  if (name == "Resize" || name == "Upsample") return keep_resize(op, rule);
  if (name == "QuantizeLinear" || name == "DequantizeLinear") return keep_quantised(op, rule);
  if (name == "MatMulInteger") return keep_integer_product(op, rule, {2, 3});
  if (name == "QLinearMatMul") return keep_integer_product(op, rule, {1, 2, 4, 5, 6, 7});
}

}  // namespace doppler::program
