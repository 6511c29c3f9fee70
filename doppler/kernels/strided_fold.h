#pragma once

#include <array>
#include <cstddef>

#include "doppler/kernels/loop_nest.h"
#include "doppler/program/expr/program.h"

namespace doppler {

// A prepared formation: folds a rectangle of a partial result into an array.
class StridedFold {
 public:
  // Makes a fold with the arguments of StridedCopy::between. Throws InputError for a dtype without kernels.
  StridedFold(program::Aggregate aggregate, program::DType dtype, const program::Rect& from, const program::Rect& to,
              const program::Rect& region);

  // Folds `from` into `to`; the first one only copies.
  void run(const std::byte* from, std::byte* to, bool first) const;

  // Returns what it does, for others who do the same.
  std::vector<Loop> loops() const;
  program::Aggregate aggregate() const { return aggregate_; }
  program::DType dtype() const { return dtype_; }
  program::Index from_offset() const { return offsets_[0]; }
  program::Index to_offset() const { return offsets_[1]; }

 private:
  program::Aggregate aggregate_;
  program::DType dtype_;
  std::vector<Loop> outer_;
  program::Index columns_ = 1;  // they are contiguous in both arrays
  std::array<program::Index, 2> offsets_ = {0, 0};
};

}  // namespace doppler
