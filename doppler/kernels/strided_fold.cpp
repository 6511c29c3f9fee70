#include "doppler/kernels/strided_fold.h"

#include <cstring>

#include "doppler/kernels/element.h"
#include "doppler/kernels/host/lane_fold.h"

namespace doppler {

using program::Index;
using program::Rect;

StridedFold::StridedFold(program::Aggregate aggregate, program::DType dtype, const Rect& from, const Rect& to,
                         const Rect& region)
    : aggregate_(aggregate), dtype_(dtype) {
  with_element("formation", dtype, [](auto) {});
  const RegionLoops nest = region_loops(from, to, region);
  offsets_ = nest.offsets;
  outer_ = collapsed(nest.loops);
  if (!outer_.empty() && outer_.back().steps == std::vector<Index>{1, 1}) {
    columns_ = outer_.back().size;
    outer_.pop_back();
  }
}

std::vector<Loop> StridedFold::loops() const {
  std::vector<Loop> loops = outer_;
  loops.push_back({columns_, {1, 1}});
  return loops;
}

void StridedFold::run(const std::byte* from, std::byte* to, bool first) const {
  with_element("formation", dtype_, [&](auto element) {
    using T = decltype(element);
    const auto count = static_cast<std::size_t>(columns_);
    std::array<Index, 2> offsets = offsets_;
    for_each_offset(outer_, offsets, [&] {
      const T* const source = reinterpret_cast<const T*>(from) + offsets[0];
      T* const target = reinterpret_cast<T*>(to) + offsets[1];
      if (first)
        std::memcpy(target, source, count * sizeof(T));
      else
        fold_lane(aggregate_, target, source, count);
    });
  });
}

}  // namespace doppler
