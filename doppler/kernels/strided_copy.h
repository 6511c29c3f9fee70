#pragma once

#include <cstddef>
#include <vector>

#include "doppler/kernels/loop_nest.h"

namespace doppler {

// A prepared copy of a rectangle of elements from one strided array to another.
class StridedCopy {
 public:
  // The loops are over two arrays, from and to. Elements have 1, 2, 4, 8 or 16 bytes.
  StridedCopy(std::vector<Loop> loops, std::size_t element_bytes, program::Index from_offset = 0,
              program::Index to_offset = 0);
  // Makes a copy of `region` of index space, from a row-major array that covers the rectangle `from` to one that covers
  // `to`.
  static StridedCopy between(const program::Rect& from, const program::Rect& to, const program::Rect& region,
                             std::size_t element_bytes);

  void run(const std::byte* from, std::byte* to) const;

  // Returns what it does, for others who do the same.
  std::vector<Loop> loops() const;
  std::size_t element_bytes() const { return element_bytes_; }
  program::Index from_offset() const { return from_offset_; }
  program::Index to_offset() const { return to_offset_; }

 private:
  template <typename Element>
  void run_planes(const std::byte* from, std::byte* to) const;

  // These are of the two innermost loops; the others are in outer_.
  struct Plane {
    program::Index rows = 1, columns = 1, from_row = 0, from_column = 1, to_row = 0, to_column = 1;
  };
  std::vector<Loop> outer_;
  Plane plane_;
  std::size_t element_bytes_;
  program::Index from_offset_, to_offset_;
};

}  // namespace doppler
