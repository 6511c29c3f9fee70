#pragma once

#include <array>
#include <span>
#include <vector>

#include "doppler/program/expr/shape.h"

namespace doppler {

// One loop of a nest over several arrays at once: how often, and how far each array moves per turn, in elements.
struct Loop {
  program::Index size = 1;
  std::vector<program::Index> steps;
};

// Returns the same nest without loops of one turn, and with loops merged where every array moves on as if they were
// one.
std::vector<Loop> collapsed(const std::vector<Loop>& loops);

// Returns the steps of a row-major array.
std::vector<program::Index> row_major_steps(const program::Shape& shape);

// The nest over `region` of index space in two row-major arrays, of which one covers the rectangle `from` and one `to`.
struct RegionLoops {
  std::vector<Loop> loops;
  std::array<program::Index, 2> offsets = {0, 0};  // of the region's first element
};
RegionLoops region_loops(const program::Rect& from, const program::Rect& to, const program::Rect& region);

// Calls visit() for every index of the nest, the last loop fastest; `offsets` are those of the arrays meanwhile, and as
// before at the end.
template <typename Visit>
void for_each_offset(std::span<const Loop> loops, std::span<program::Index> offsets, Visit&& visit) {
  if (loops.empty()) return visit();
  const Loop& loop = loops.front();
  for (program::Index i = 0; i < loop.size; ++i) {
    for_each_offset(loops.subspan(1), offsets, visit);
    for (std::size_t k = 0; k < offsets.size(); ++k) offsets[k] += loop.steps[k];
  }
  for (std::size_t k = 0; k < offsets.size(); ++k) offsets[k] -= loop.size * loop.steps[k];
}

}  // namespace doppler
