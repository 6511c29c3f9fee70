#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "doppler/units.h"

namespace doppler::program {

// c64 is a pair of f32, and so on. The last row comes with imported models only: programs compute on the others.
enum class DType : std::uint8_t { f16, f32, f64, c32, c64, c128, bf16, i8, i16, i32, i64 };
std::string_view to_string(DType dtype);
DType parse_dtype(std::string_view text);  // of a program; throws InputError
Bytes size_of(DType dtype);
bool is_complex(DType dtype);
DType complex_of(DType real);  // f32 -> c64
DType real_of(DType complex);  // c64 -> f32

using Index = std::int64_t;
using Shape = std::vector<Index>;
// Pieces per label: [2, 1, 4] cuts the first label in 2 and the third in 4. EinDecomp calls it a partition
// vector.
using Box = std::vector<Index>;

// Products above this are refused when a program is built, so later code multiplies sizes without a thought.
inline constexpr Index kMostElements = 1'000'000'000'000'000'000;

Index product(const std::vector<Index>& values);
std::string to_string(const std::vector<Index>& values);  // "[2, 3]"

// A half-open rectangle in index space.
struct Rect {
  Shape begin, end;

  static Rect whole(const Shape& shape) { return {Shape(shape.size(), 0), shape}; }
  Shape shape() const;
  Index volume() const { return product(shape()); }
  bool operator==(const Rect&) const = default;
};
Rect intersect(const Rect& a, const Rect& b);  // empty (end == begin) in the dimensions that do not meet
Rect shifted(const Rect& rect, const Shape& by, Index sign = 1);

// Block k of n elements cut in d pieces is [⌊k·n/d⌋, ⌊(k+1)·n/d⌋).
inline Index block_begin(Index k, Index size, Index pieces) { return k * size / pieces; }
// The block that holds element x.
inline Index block_of(Index x, Index size, Index pieces) { return ((x + 1) * pieces - 1) / size; }

Rect block_rect(const Shape& shape, const Box& box, const std::vector<Index>& block);
// Calls visit(index) for every index vector of the half-open rectangle, last dimension fastest.
template <typename Visit>
void for_each_index(const Rect& rect, Visit visit) {
  for (std::size_t i = 0; i < rect.begin.size(); ++i)
    if (rect.begin[i] >= rect.end[i]) return;
  std::vector<Index> index = rect.begin;
  while (true) {
    visit(index);
    std::size_t i = index.size();
    while (i > 0 && ++index[i - 1] == rect.end[i - 1]) --i, index[i] = rect.begin[i];
    if (i == 0) return;
  }
}
// Row-major position of `index` in an array of this shape.
Index offset_in(const Shape& shape, const std::vector<Index>& index);

}  // namespace doppler::program
