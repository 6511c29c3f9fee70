#pragma once

#include <algorithm>
#include <array>

#include "doppler/kernels/onnx/window.h"

namespace doppler::model {

using Tap = std::array<Index, 4>;  // an element of the kernel, by its index

// Calls visit(at in the output, at in the input, count) for the rows of windows of which `tap` lies within the input:
// `count` windows that follow each other along the last dimension.
template <typename Visit>
void for_each_window_row(const Window& w, const Tap& tap, Visit visit) {
  const std::size_t last = w.rank() - 1;
  const Index shift = tap[last] * w.dilations[last] - w.before[last], stride = w.strides[last];
  const Index first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  const Index room = w.in[last] - 1 - shift;
  const Index end = room < 0 ? 0 : std::min(w.out[last], room / stride + 1);
  if (first >= end || program::product(w.out) == 0) return;
  std::array<Index, 4> at{};
  while (true) {
    Index in_row = 0, out_row = 0;
    bool inside = true;
    for (std::size_t d = 0; d < last; ++d) {
      const Index position = at[d] * w.strides[d] + tap[d] * w.dilations[d] - w.before[d];
      inside &= position >= 0 && position < w.in[d];
      in_row = in_row * w.in[d] + position;
      out_row = out_row * w.out[d] + at[d];
    }
    if (inside) visit(out_row * w.out[last] + first, in_row * w.in[last] + first * stride + shift, end - first);
    std::size_t d = last;
    while (d > 0 && ++at[d - 1] == w.out[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

// Calls visit(tap, its number) for every element of the kernel.
template <typename Visit>
void for_each_tap(const Window& w, Visit visit) {
  Tap tap{};
  const Index count = w.kernel_count();
  for (Index number = 0; number < count; ++number) {
    visit(tap, number);
    for (std::size_t d = w.rank(); d-- > 0;) {
      if (++tap[d] < w.kernel[d]) break;
      tap[d] = 0;
    }
  }
}

}  // namespace doppler::model
