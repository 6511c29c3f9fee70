#include "doppler/kernels/loop_nest.h"

namespace doppler {

using program::Index;

std::vector<Loop> collapsed(const std::vector<Loop>& loops) {
  std::vector<Loop> result;
  for (const Loop& loop : loops) {
    if (loop.size == 1) continue;
    bool merges = !result.empty();
    for (std::size_t k = 0; merges && k < loop.steps.size(); ++k)
      merges = result.back().steps[k] == loop.steps[k] * loop.size;
    if (merges)
      result.back() = {result.back().size * loop.size, loop.steps};
    else
      result.push_back(loop);
  }
  return result;
}

std::vector<Index> row_major_steps(const program::Shape& shape) {
  std::vector<Index> steps(shape.size());
  Index step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    steps[i] = step;
    step *= shape[i];
  }
  return steps;
}

RegionLoops region_loops(const program::Rect& from, const program::Rect& to, const program::Rect& region) {
  const std::vector<Index> from_steps = row_major_steps(from.shape()), to_steps = row_major_steps(to.shape());
  const program::Shape shape = region.shape();
  RegionLoops result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    result.loops.push_back({shape[i], {from_steps[i], to_steps[i]}});
    result.offsets[0] += (region.begin[i] - from.begin[i]) * from_steps[i];
    result.offsets[1] += (region.begin[i] - to.begin[i]) * to_steps[i];
  }
  return result;
}

}  // namespace doppler
