#include "doppler/kernels/strided_copy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "doppler/base/error.h"

namespace doppler {

using program::Index;
using program::Rect;

namespace {

// Elements are moved, not computed with.
struct Bytes16 {
  std::uint64_t half[2];
};

// A tile of both arrays fits in the first-level cache, so that a transposition reads and writes whole lines. Where
// steps are powers of two, the lines of a tile compete for one set of the cache, which has eight or more places.
constexpr Index kTileRows = 16, kTileColumns = 8;

}  // namespace

StridedCopy::StridedCopy(std::vector<Loop> loops, std::size_t element_bytes, Index from_offset, Index to_offset)
    : outer_(collapsed(loops)), element_bytes_(element_bytes), from_offset_(from_offset), to_offset_(to_offset) {
  DOPPLER_CHECK(std::has_single_bit(element_bytes) && element_bytes <= 16, "found {} bytes", element_bytes);
  // The plane is made of the fastest loops of both arrays, so that each reads or writes whole lines in it.
  const auto fastest_read = std::min_element(outer_.begin(), outer_.end(),
                                             [](const Loop& a, const Loop& b) { return a.steps[0] < b.steps[0]; });
  if (outer_.size() > 2 && fastest_read < outer_.end() - 2 && fastest_read->steps[0] == 1)
    std::rotate(fastest_read, fastest_read + 1, outer_.end() - 1);
  if (!outer_.empty()) {
    const Loop& loop = outer_.back();
    plane_.columns = loop.size;
    plane_.from_column = loop.steps[0];
    plane_.to_column = loop.steps[1];
    outer_.pop_back();
  }
  if (!outer_.empty()) {
    const Loop& loop = outer_.back();
    plane_.rows = loop.size;
    plane_.from_row = loop.steps[0];
    plane_.to_row = loop.steps[1];
    outer_.pop_back();
  }
}

StridedCopy StridedCopy::between(const Rect& from, const Rect& to, const Rect& region, std::size_t element_bytes) {
  RegionLoops nest = region_loops(from, to, region);
  return {std::move(nest.loops), element_bytes, nest.offsets[0], nest.offsets[1]};
}

template <typename Element>
void StridedCopy::run_planes(const std::byte* from, std::byte* to) const {
  std::array<Index, 2> offsets = {from_offset_, to_offset_};
  const Plane& p = plane_;
  for_each_offset(outer_, offsets, [&] {
    const Element* const source = reinterpret_cast<const Element*>(from) + offsets[0];
    Element* const target = reinterpret_cast<Element*>(to) + offsets[1];
    if (p.from_column == 1 && p.to_column == 1) {
      for (Index row = 0; row < p.rows; ++row)
        std::memcpy(target + row * p.to_row, source + row * p.from_row,
                    static_cast<std::size_t>(p.columns) * sizeof(Element));
      return;
    }
    for (Index row = 0; row < p.rows; row += kTileRows)
      for (Index column = 0; column < p.columns; column += kTileColumns)
        for (Index i = row; i < std::min(p.rows, row + kTileRows); ++i)
          for (Index j = column; j < std::min(p.columns, column + kTileColumns); ++j)
            target[i * p.to_row + j * p.to_column] = source[i * p.from_row + j * p.from_column];
  });
}

std::vector<Loop> StridedCopy::loops() const {
  std::vector<Loop> loops = outer_;
  loops.push_back({plane_.rows, {plane_.from_row, plane_.to_row}});
  loops.push_back({plane_.columns, {plane_.from_column, plane_.to_column}});
  return loops;
}

void StridedCopy::run(const std::byte* from, std::byte* to) const {
  if (element_bytes_ == 4) return run_planes<std::uint32_t>(from, to);
  if (element_bytes_ == 8) return run_planes<std::uint64_t>(from, to);
  if (element_bytes_ == 2) return run_planes<std::uint16_t>(from, to);
  if (element_bytes_ == 1) return run_planes<std::uint8_t>(from, to);
  run_planes<Bytes16>(from, to);
}

}  // namespace doppler
