// How tensors in other layouts than row-major are walked along by kernels that compute element by element: by the
// shapes that their memory has.

#include <algorithm>

#include "doppler/kernels/onnx/elementwise.h"

namespace doppler::model {
namespace {

Shape to_channels_last(const Shape& shape) {
  Shape result = {shape[0]};
  result.insert(result.end(), shape.begin() + 2, shape.end());
  result.push_back(shape[1]);
  return result;
}

// True if the memory is the same whether row-major or with the channels last: a scalar, a vector of channels, an image.
bool is_both(const Shape& shape) {
  if (shape.size() < 2 || shape[1] == 1) return true;
  return std::all_of(shape.begin() + 2, shape.end(), [](Index size) { return size == 1; });
}

Shape aligned_to(const Shape& shape, std::size_t rank) {
  Shape result(rank - std::min(rank, shape.size()), 1);
  result.insert(result.end(), shape.begin(), shape.end());
  return result;
}

}  // namespace

Physical physical_shapes(const Spec& spec, std::size_t inputs) {
  Physical result;
  const Layout layout = spec.output_layout(0);
  std::vector<Shape> logical;
  for (std::size_t i = 0; i < inputs; ++i) logical.push_back(spec.shape(i));
  const Shape out = broadcast_shapes(logical);
  result.type = {spec.element(0), out, layout};
  if (layout == Layout::row_major) {
    for (std::size_t i = 0; i < inputs; ++i)
      if (spec.type(i).layout != Layout::row_major)
        refuse(fmt::format("input {} in layout {}", i, to_string(spec.type(i).layout)), "that of the output");
    result.inputs = std::move(logical);
    result.output = out;
    return result;
  }
  if (out.size() < 3) refuse(fmt::format("shape {}", program::to_string(out)), "3 dimensions or more in this layout");
  for (std::size_t i = 0; i < inputs; ++i) {
    const Shape shape = aligned_to(logical[i], out.size());
    const bool same = spec.type(i).layout == layout && shape == out;
    const bool scalar = spec.type(i).count() == 1;
    const bool vector = layout == Layout::channels_last && (spec.type(i).layout == layout || is_both(shape));
    if (!same && !scalar && !vector)
      refuse(fmt::format("input {} of {}", i, to_string(spec.type(i))), "the layout of the output, or a vector");
    if (layout == Layout::channels_last)
      result.inputs.push_back(to_channels_last(shape));
    else
      result.inputs.push_back(same ? Shape{program::product(out)} : Shape{1});
  }
  result.output = layout == Layout::channels_last ? to_channels_last(out) : Shape{program::product(out)};
  return result;
}

std::vector<LayoutChoice> elementwise_layouts(const Spec& spec) {
  // The broadcasts of old operator sets are row-major only.
  if (spec.node.opset < 7 && spec.node.domain.empty() && spec.inputs() > 1) return {};
  std::vector<Shape> logical;
  for (std::size_t i = 0; i < spec.inputs(); ++i)
    if (spec.has(i)) logical.push_back(spec.shape(i));
  const Shape out = broadcast_shapes(logical);
  if (out.size() < 3 || out.size() > 5) return {};
  std::vector<LayoutChoice> choices;
  for (const Layout layout : {Layout::channels_last, Layout::blocked16, Layout::blocked8}) {
    const Index block = layout == Layout::blocked16 ? 16 : layout == Layout::blocked8 ? 8 : 1;
    LayoutChoice choice{{}, {layout}};
    bool possible = out[1] % block == 0;
    for (std::size_t i = 0; i < spec.inputs() && possible; ++i) {
      const Shape shape = spec.has(i) ? aligned_to(spec.shape(i), out.size()) : Shape(out.size(), 1);
      const bool whole = spec.has(i) && shape == out && spec.rank(i) == out.size();
      const bool scalar = program::product(shape) == 1;
      possible = whole || scalar || (layout == Layout::channels_last && is_both(shape));
      choice.inputs.push_back(whole ? layout : Layout::row_major);
    }
    if (possible) choices.push_back(std::move(choice));
  }
  return choices;
}

}  // namespace doppler::model
