#include "doppler/kernels/onnx/block_node.h"

#include <algorithm>

#include "doppler/base/error.h"

namespace doppler::model {
namespace {

using program::Rect;

constexpr std::size_t kSpace = 2;  // [N, C, space…]

KernelInput integers(const std::vector<Index>& values, std::deque<Tensor>& made) {
  Tensor tensor(Element::i64, {static_cast<Index>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<std::int64_t>());
  made.push_back(std::move(tensor));
  return {made.back().type, &made.back()};
}

bool is_convolution(const KernelNode& node) {
  return node.op_type == "Conv" || node.op_type == "FusedConv" || node.op_type == "ConvInteger" ||
         node.op_type == "QLinearConv";
}
bool is_pool(const KernelNode& node) {
  return node.op_type == "MaxPool" || node.op_type == "AveragePool" || node.op_type == "LpPool";
}

// How far a window that slides over one dimension reaches before the first element, in the whole tensor.
Index padding_before(const KernelNode& node, std::size_t dimension, Index stride, Index reach, Index in, Index out) {
  const std::string automatic = node.attributes.text("auto_pad", "NOTSET");
  if (automatic == "VALID") return 0;
  if (automatic == "NOTSET") {
    const auto pads = node.attributes.integers("pads").value_or(std::vector<Index>());
    return dimension < pads.size() ? pads[dimension] : 0;
  }
  const Index total = std::max<Index>(0, (out - 1) * stride + reach - in);
  return automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
}

// Pads a block by what its own windows reach beyond the elements that there are.
void pad_windows(BlockNode& block, const Rect& region, const Shape& out, const Shape& kernel) {
  KernelNode& node = block.node;
  const Shape in = node.inputs[0].type->shape;
  const Rect& seen = block.inputs[0]->region;
  const std::size_t space = in.size() - kSpace;
  const auto listed = [&](const char* name) {
    const auto given = node.attributes.integers(name);
    return given && !given->empty() ? *given : std::vector<Index>(space, 1);
  };
  const std::vector<Index> strides = listed("strides"), dilations = listed("dilations");
  std::vector<Index> pads(2 * space, 0);
  for (std::size_t i = 0; i < space; ++i) {
    const std::size_t axis = i + kSpace;
    const Index reach = (kernel.at(i) - 1) * dilations.at(i) + 1;
    const Index before = padding_before(node, i, strides.at(i), reach, in[axis], out[axis]);
    pads[i] = seen.begin[axis] - (region.begin[axis] * strides[i] - before);
    pads[space + i] = (region.end[axis] - 1) * strides[i] - before + reach - seen.end[axis];
    // A window may end before the input does.
    if (pads[space + i] < 0) pads[space + i] = 0;
  }
  node.attributes.set("pads", pads);
  node.attributes.set("auto_pad", std::string("NOTSET"));
  if (node.attributes.has("ceil_mode")) node.attributes.set("ceil_mode", Index{0});
}

void make_slice(BlockNode& block, const Rect& region, std::deque<Tensor>& made) {
  const Shape seen = block.inputs[0]->region.shape(), out = region.shape();
  std::vector<Index> steps;
  for (std::size_t i = 0; i < out.size(); ++i) steps.push_back(out[i] > 1 ? (seen[i] - 1) / (out[i] - 1) : 1);
  std::vector<Index> axes(out.size());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<Index>(i);
  constexpr int kStepsAreInputs = 13;
  block.node.opset = std::max(block.node.opset, kStepsAreInputs);
  block.node.attributes = {};
  block.node.inputs.resize(1);
  for (const std::vector<Index>& argument : {std::vector<Index>(out.size(), 0), seen, axes, steps})
    block.node.inputs.push_back(integers(argument, made));
  block.inputs.resize(1);
  block.inputs.resize(block.node.inputs.size());
}

void drop_empty_inputs(BlockNode& block) {
  for (std::size_t i = block.inputs.size(); i-- > 0;)
    if (block.inputs[i] && block.inputs[i]->region.volume() == 0) {
      block.inputs.erase(block.inputs.begin() + static_cast<std::ptrdiff_t>(i));
      block.node.inputs.erase(block.node.inputs.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

void replace_constant(BlockNode& block, std::size_t slot, const std::vector<Index>& values, std::deque<Tensor>& made) {
  if (slot >= block.node.inputs.size() || !block.node.inputs[slot].type) return;
  block.node.inputs[slot] = integers(values, made);
  block.inputs[slot].reset();
}

}  // namespace

BlockNode block_node(KernelNode node, const RunnableModel::Block& block, const Shape& out, std::deque<Tensor>& made) {
  BlockNode result;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    result.inputs.emplace_back();
    if (!node.inputs[i].type) continue;
    const bool listed = i < block.inputs.size() && block.output != kAbsent;
    result.inputs.back() = {i, listed ? block.inputs[i] : Rect::whole(node.inputs[i].type->shape)};
  }
  result.node = std::move(node);
  if (block.output == kAbsent) return result;
  KernelNode& made_node = result.node;
  made_node.outputs_used = {true};
  if (is_convolution(made_node)) {
    const Shape& weights = made_node.inputs[made_node.op_type == "QLinearConv" ? 3 : 1].type->shape;
    pad_windows(result, block.region, out, Shape(weights.begin() + kSpace, weights.end()));
    // Where every channel is a group of its own, the block has as many as it has channels.
    if (made_node.attributes.integer("group", 1) > 1)
      made_node.attributes.set("group", weights[0] == made_node.attributes.integer("group", 1)
                                            ? block.region.end[1] - block.region.begin[1]
                                            : made_node.attributes.integer("group", 1));
  } else if (is_pool(made_node)) {
    pad_windows(result, block.region, out, made_node.attributes.integers("kernel_shape").value_or(Shape()));
  } else if (made_node.op_type == "Slice") {
    make_slice(result, block.region, made);
  } else if (made_node.op_type == "Split") {
    made_node.op_type = "Identity";
    made_node.attributes = {};
    made_node.inputs.resize(1);
    result.inputs.resize(1);
  } else if (made_node.op_type == "Expand") {
    replace_constant(result, 1, block.region.shape(), made);
  } else if (made_node.op_type == "Resize") {
    replace_constant(result, 3, block.region.shape(), made);
  } else if (made_node.op_type == "Concat") {
    drop_empty_inputs(result);
  }
  return result;
}

}  // namespace doppler::model
