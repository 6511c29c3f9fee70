#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "doppler/kernels/element.h"
#include "doppler/program/expr/program.h"

namespace doppler {

// Calls visit with the function that folds two elements. The choice is made once, outside of every loop.
template <typename T, typename Visit>
void with_fold(program::Aggregate aggregate, Visit&& visit) {
  switch (aggregate) {
    case program::Aggregate::sum:
      return visit([](T a, T b) { return a + b; });
    case program::Aggregate::product:
      return visit([](T a, T b) { return times(a, b); });
    case program::Aggregate::max:
      return visit([](T a, T b) { return less(a, b) ? b : a; });
    case program::Aggregate::min:
      return visit([](T a, T b) { return less(b, a) ? b : a; });
  }
}

// Computes into[i] = fold(into[i], values[i]).
template <typename T>
void fold_lane(program::Aggregate aggregate, T* __restrict into, const T* __restrict values, std::size_t count) {
  with_fold<T>(aggregate, [&](auto fold) {
    for (std::size_t i = 0; i < count; ++i) into[i] = fold(into[i], values[i]);
  });
}

// Returns all elements folded to one. Sixteen folds run side by side: fast, and rounding grows with a sixteenth of the
// count.
template <typename T>
T fold_to_one(program::Aggregate aggregate, T start, const T* values, std::size_t count) {
  constexpr std::size_t kWidth = 16;
  with_fold<T>(aggregate, [&](auto fold) {
    std::size_t i = 0;
    if (count >= 2 * kWidth) {
      std::array<T, kWidth> partial;
      std::copy_n(values, kWidth, partial.begin());
      for (i = kWidth; i + kWidth <= count; i += kWidth)
        for (std::size_t j = 0; j < kWidth; ++j) partial[j] = fold(partial[j], values[i + j]);
      for (const T value : partial) start = fold(start, value);
    }
    for (; i < count; ++i) start = fold(start, values[i]);
  });
  return start;
}

}  // namespace doppler
