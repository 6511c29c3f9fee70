#include "doppler/kernels/onnx/tensor_region.h"

#include <algorithm>
#include <numeric>

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

}  // namespace doppler::model
