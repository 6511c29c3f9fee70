#pragma once

#include "doppler/program/onnx/tensor.h"

namespace doppler::model {

// Copies a box of elements between two memories in which each dimension has a step of its own, in elements; a step of
// the source may be 0 (repeat) or negative (backwards). Planned once: dimensions that can be one are one, and the order
// of the loops suits both sides.
class StridedCopy {
 public:
  StridedCopy() = default;
  StridedCopy(std::size_t element_bytes, const Shape& dims, const std::vector<Index>& from,
              const std::vector<Index>& to);

  // `from` and `to` are where the element of index 0 is.
  void run(const std::byte* from, std::byte* to) const;

 private:
  struct Dim {
    Index size, from, to;
  };
  template <typename T>
  void run_typed(const T* from, T* to) const;

  std::size_t bytes_ = 0;
  std::vector<Dim> outer_;
  Dim rows_{1, 0, 0}, row_{1, 1, 1};  // the two innermost loops
  bool empty_ = true;
};

}  // namespace doppler::model
