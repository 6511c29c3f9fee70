#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <vector>

#include "doppler/learn/nn/wide.h"

namespace doppler {

inline constexpr std::size_t kBlock = 32;  // The widths of layers are multiples of it.

}  // namespace doppler

namespace doppler::dense {

// kBlock numbers in vector registers: eight of the four-lane registers that every x86-64 and most other processors
// have. Spelt out, because g++ 12 leaves arrays in memory.
template <typename Real>
class Block {
  typedef Real Lanes __attribute__((vector_size(4 * sizeof(Real)), may_alias, aligned(sizeof(Real))));
  static_assert(kBlock == 32);

 public:
  [[gnu::always_inline]] explicit Block(const Real* x)
      : a_(at(x, 0)),
        b_(at(x, 1)),
        c_(at(x, 2)),
        d_(at(x, 3)),
        e_(at(x, 4)),
        f_(at(x, 5)),
        g_(at(x, 6)),
        h_(at(x, 7)) {}
  [[gnu::always_inline]] void store(Real* x) const {
    Lanes* to = reinterpret_cast<Lanes*>(x);
    to[0] = a_, to[1] = b_, to[2] = c_, to[3] = d_, to[4] = e_, to[5] = f_, to[6] = g_, to[7] = h_;
  }
  [[gnu::always_inline]] void add(const Block& x) {
    combine(x, [](Lanes& to, const Lanes& from) { to += from; });
  }
  [[gnu::always_inline]] void add_scaled(Real scale, const Block& x) {
    const Lanes factor = {scale, scale, scale, scale};
    combine(x, [factor](Lanes& to, const Lanes& from) { to += factor * from; });
  }
  [[gnu::always_inline]] void scale(Real scale) {
    const Lanes factor = {scale, scale, scale, scale};
    combine(*this, [factor](Lanes& to, const Lanes&) { to *= factor; });
  }
  // Multiplies by `slope` where `sign` is not positive.
  [[gnu::always_inline]] void leak_where(const Block& sign, Real slope) {
    const Lanes factor = {slope, slope, slope, slope}, zero = {};
    combine(sign, [=](Lanes& to, const Lanes& from) { to = from > zero ? to : factor * to; });
  }
  [[gnu::always_inline]] void leak(Real slope) { leak_where(*this, slope); }
  [[gnu::always_inline]] Real dot(const Block& x) const {
    const Lanes sum =
        ((a_ * x.a_ + b_ * x.b_) + (c_ * x.c_ + d_ * x.d_)) + ((e_ * x.e_ + f_ * x.f_) + (g_ * x.g_ + h_ * x.h_));
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }

 private:
  [[gnu::always_inline]] static const Lanes& at(const Real* x, std::size_t i) {
    return reinterpret_cast<const Lanes*>(x)[i];
  }
  template <typename Step>
  [[gnu::always_inline]] void combine(const Block& x, Step step) {
    step(a_, x.a_), step(b_, x.b_), step(c_, x.c_), step(d_, x.d_);
    step(e_, x.e_), step(f_, x.f_), step(g_, x.g_), step(h_, x.h_);
  }
  Lanes a_, b_, c_, d_, e_, f_, g_, h_;
};

// y[columns] += x[inner] · w[inner × columns], where x may be of another type and is often 0
template <typename Real, typename Input>
[[gnu::always_inline]] inline void row_multiply_add(const Input* x, const Real* w, Real* y, std::size_t inner,
                                                    std::size_t columns) {
  for (std::size_t block = 0; block < columns; block += kBlock) {
    Block<Real> sum(y + block);
    for (std::size_t i = 0; i < inner; ++i)
      if (x[i] != 0) sum.add_scaled(static_cast<Real>(x[i]), Block<Real>(w + i * columns + block));
    sum.store(y + block);
  }
}

// y[rows × columns] += x[rows × inner] · w[inner × columns]. In panels of w that stay in the cache for all rows;
// columns beyond a multiple of kBlock are slower.
template <typename Real>
void multiply_add(const Real* x, const Real* w, Real* y, std::size_t rows, std::size_t inner, std::size_t columns) {
  const std::size_t blocked = columns / kBlock * kBlock;
  for (std::size_t row = 0; blocked < columns && row < rows; ++row)
    for (std::size_t i = 0; i < inner; ++i)
      for (std::size_t k = blocked; k < columns; ++k) y[row * columns + k] += x[row * inner + i] * w[i * columns + k];
  if constexpr (std::is_same_v<Real, float>)
    if (has_wide_registers()) return wide_multiply_add(x, w, y, rows, inner, columns);
  for (std::size_t block = 0; block < blocked; block += kBlock)
    for (std::size_t row = 0; row < rows; ++row) {
      Block<Real> sum(y + row * columns + block);
      for (std::size_t i = 0; i < inner; ++i) sum.add_scaled(x[row * inner + i], Block<Real>(w + i * columns + block));
      sum.store(y + row * columns + block);
    }
}

// w[inner × columns] += xᵀ · g, for x[rows × inner] and g[rows × columns]. In bands of rows that stay in the cache;
// columns beyond a multiple of kBlock are slower.
template <typename Real, typename Input>
void outer_add(const Input* x, const Real* g, Real* w, std::size_t rows, std::size_t inner, std::size_t columns) {
  constexpr std::size_t kBand = 64;
  const std::size_t blocked = columns / kBlock * kBlock;
  for (std::size_t row = 0; blocked < columns && row < rows; ++row)
    for (std::size_t i = 0; i < inner; ++i)
      for (std::size_t k = blocked; k < columns; ++k)
        w[i * columns + k] += static_cast<Real>(x[row * inner + i]) * g[row * columns + k];
  if constexpr (std::is_same_v<Real, float> && std::is_same_v<Input, float>)
    if (has_wide_registers()) return wide_outer_add(x, g, w, rows, inner, columns);
  for (std::size_t begin = 0; begin < rows; begin += kBand)
    for (std::size_t block = 0; block < blocked; block += kBlock)
      for (std::size_t i = 0; i < inner; ++i) {
        Block<Real> sum(w + i * columns + block);
        for (std::size_t row = begin; row < std::min(begin + kBand, rows); ++row)
          sum.add_scaled(static_cast<Real>(x[row * inner + i]), Block<Real>(g + row * columns + block));
        sum.store(w + i * columns + block);
      }
}

// x[inner] += g[columns] · wᵀ, for w[inner × columns].
template <typename Real>
void row_multiply_transposed_add(const Real* g, const Real* w, Real* x, std::size_t inner, std::size_t columns) {
  const std::size_t blocked = columns / kBlock * kBlock;
  for (std::size_t i = 0; i < inner; ++i, w += columns) {
    Real total = 0;
    for (std::size_t block = 0; block < blocked; block += kBlock)
      total += Block<Real>(g + block).dot(Block<Real>(w + block));
    for (std::size_t k = blocked; k < columns; ++k) total += g[k] * w[k];
    x[i] += total;
  }
}

// x[rows × inner] += g[rows × columns] · wᵀ, for w[inner × columns]. Through a transposed copy, because dot products
// would leave the vector registers at every element; the copy is not worth it for one row.
template <typename Real>
void multiply_transposed_add(const Real* g, const Real* w, Real* x, std::size_t rows, std::size_t inner,
                             std::size_t columns, std::vector<Real>& scratch) {
  if (rows == 1) return row_multiply_transposed_add(g, w, x, inner, columns);
  scratch.resize(inner * columns);
  for (std::size_t i = 0; i < inner; ++i)
    for (std::size_t k = 0; k < columns; ++k) scratch[k * inner + i] = w[i * columns + k];
  multiply_add(g, scratch.data(), x, rows, columns, inner);
}

// y[n] += x[n]; n is a multiple of kBlock
template <typename Real>
void add(const Real* x, Real* y, std::size_t n) {
  for (std::size_t block = 0; block < n; block += kBlock) {
    Block<Real> sum(y + block);
    sum.add(Block<Real>(x + block));
    sum.store(y + block);
  }
}
template <typename Real>
void add_scaled(Real scale, const Real* x, Real* y, std::size_t n) {
  for (std::size_t block = 0; block < n; block += kBlock) {
    Block<Real> sum(y + block);
    sum.add_scaled(scale, Block<Real>(x + block));
    sum.store(y + block);
  }
}
// bias[columns] += the sum of the rows of g
template <typename Real>
void sum_rows(const Real* g, Real* bias, std::size_t rows, std::size_t columns) {
  for (std::size_t row = 0; row < rows; ++row) add(g + row * columns, bias, columns);
}
template <typename Real>
void repeat_row(const Real* bias, Real* y, std::size_t rows, std::size_t columns) {
  for (std::size_t row = 0; row < rows; ++row) std::copy_n(bias, columns, y + row * columns);
}

}  // namespace doppler::dense
