#include "doppler/kernels/onnx/tensor_region.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>

#include "doppler/base/error.h"

namespace doppler::model {
namespace {

using program::Rect;

// The dimensions of a tensor, the slowest in memory first.
std::vector<std::size_t> memory_order(const TensorType& type) {
  std::vector<std::size_t> order(type.shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  DOPPLER_CHECK(type.layout == Layout::row_major || type.layout == Layout::channels_last,
                "a region of a blocked tensor");
  if (type.layout == Layout::channels_last && order.size() > 2)
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

Index offset_of(const TensorType& type, const Rect& region) {
  const std::vector<Index> steps = steps_of(type);
  return std::inner_product(steps.begin(), steps.end(), region.begin.begin(), Index{0});
}

// Walks along the elements of the region in the order of the array that is written.
std::vector<Loop> loops_over(const Shape& sizes, const TensorType& from, const TensorType& to) {
  const std::vector<Index> from_steps = steps_of(from), to_steps = steps_of(to);
  std::vector<Loop> loops;
  for (const std::size_t i : memory_order(to)) loops.push_back({sizes[i], {from_steps[i], to_steps[i]}});
  return loops;
}

}  // namespace

std::vector<Index> steps_of(const TensorType& type) {
  std::vector<Index> steps(type.shape.size(), 1);
  const std::vector<std::size_t> order = memory_order(type);
  Index step = 1;
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    steps[*i] = step;
    step *= type.shape[*i];
  }
  return steps;
}

std::optional<Index> dense_offset(const TensorType& type, const Rect& region) {
  bool inside = false;  // below the first dimension of which the region has more than one index
  const Shape sizes = region.shape();
  for (const std::size_t i : memory_order(type)) {
    if (inside && sizes[i] != type.shape[i]) return std::nullopt;
    inside = inside || sizes[i] > 1;
  }
  return offset_of(type, region);
}

StridedCopy gather_region(const TensorType& from, const Rect& region, Layout layout) {
  const TensorType to{from.element, region.shape(), layout};
  return {loops_over(to.shape, from, to), size_of(from.element), offset_of(from, region), 0};
}

StridedCopy scatter_region(const TensorType& to, const Rect& region, Layout layout) {
  const TensorType from{to.element, region.shape(), layout};
  return {loops_over(from.shape, from, to), size_of(to.element), 0, offset_of(to, region)};
}

Rect region_below_view(const Shape& shape, const Shape& view, const Rect& region) {
  if (region.volume() == 0) return {Shape(shape.size(), 0), Shape(shape.size(), 0)};
  Rect below{shape, Shape(shape.size(), 0)};
  // Takes in the elements from the first up to the last one.
  const auto cover = [&](Index first, Index last) {
    bool crossed = false;  // a dimension before this one has several indices, so that this one is passed through whole
    Index below_here = std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
    for (std::size_t i = 0; i < shape.size(); ++i) {
      below_here /= shape[i];
      const Index begin = crossed ? 0 : first / below_here % shape[i];
      const Index end = crossed ? shape[i] : last / below_here % shape[i] + 1;
      below.begin[i] = std::min(below.begin[i], begin);
      below.end[i] = std::max(below.end[i], end);
      crossed = crossed || end - begin > 1;
    }
  };
  const TensorType seen{Element::u8, view, Layout::row_major};
  Shape rows = region.shape();
  const Index row = rows.empty() ? 1 : std::exchange(rows.back(), 1);
  std::array<Index, 1> offset = {offset_of(seen, region)};
  std::vector<Loop> loops;
  const std::vector<Index> steps = steps_of(seen);
  for (std::size_t i = 0; i < rows.size(); ++i) loops.push_back({rows[i], {steps[i]}});
  for_each_offset(loops, offset, [&] { cover(offset[0], offset[0] + row - 1); });
  return below;
}

StridedCopy region_to_row_major(const TensorType& from, const Rect& region) {
  const TensorType to{from.element, from.shape, Layout::row_major};
  return {loops_over(region.shape(), from, to), size_of(from.element), offset_of(from, region), offset_of(to, region)};
}

}  // namespace doppler::model
