#pragma once

#include <cstddef>

namespace doppler::dense {

// The two loops that most of a training goes into, for processors with registers of eight lanes (AVX2). They round like
// those of dense.h, which call them: products and sums are not fused, and sums are in the same order. Only whole blocks
// of columns are done.
bool has_wide_registers();
void wide_multiply_add(const float* x, const float* w, float* y, std::size_t rows, std::size_t inner,
                       std::size_t columns);
void wide_outer_add(const float* x, const float* g, float* w, std::size_t rows, std::size_t inner, std::size_t columns);

}  // namespace doppler::dense
