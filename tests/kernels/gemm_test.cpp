#include "doppler/kernels/host/gemm.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace doppler {
namespace {

// Small whole numbers, whose products and sums are exact in f32.
template <typename Number>
std::vector<Number> whole_numbers(program::Index count, unsigned start) {
  std::vector<Number> result(static_cast<std::size_t>(count));
  for (Number& value : result) value = static_cast<Number>((start = start * 1103515245u + 12345u) >> 28) - 8;
  return result;
}

// Of products of m × k matrices with the transposes of n × k ones, computed again and again by several threads at
// once, each its own numbers and sizes.
template <typename Number>
int wrong_products(program::Index least_m, program::Index n, program::Index least_k, int rounds) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const program::Index m = least_m + t, k = least_k + t;
      const std::vector<Number> a = whole_numbers<Number>(m * k, 2 * t), b = whole_numbers<Number>(n * k, 2 * t + 1);
      std::vector<Number> expected(static_cast<std::size_t>(m * n), 0), c(expected.size());
      for (program::Index row = 0; row < m; ++row)
        for (program::Index column = 0; column < n; ++column)
          for (program::Index inner = 0; inner < k; ++inner)
            expected[row * n + column] += a[row * k + inner] * b[column * k + inner];
      const GemmShape shape{.m = m, .n = n, .k = k, .a = {k, 1}, .b = {1, k}, .c_row = n};
      for (int round = 0; round < rounds; ++round) {
        gemm(shape, a.data(), b.data(), c.data());
        if (c != expected) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  return wrong;
}

// Of sizes beside and beyond those of any block that a library packs, whose sums it may take in another order.
TEST(Gemm, HasTheSameBitsEveryTime) {
  const GemmShape shape{.m = 130, .n = 99, .k = 777, .a = {777, 1}, .b = {1, 777}, .c_row = 99};
  const auto check = [&]<typename Number>(Number) {
    std::vector<Number> a = whole_numbers<Number>(130 * 777, 1), b = whole_numbers<Number>(777 * 99, 2);
    for (Number& value : a) value /= 7;
    std::vector<Number> first(130 * 99), again(first.size());
    gemm(shape, a.data(), b.data(), first.data());
    for (int round = 0; round < 3; ++round) {
      std::thread([&] { gemm(shape, a.data(), b.data(), again.data()); }).join();
      EXPECT_EQ(again, first);
    }
  };
  check(float{});
  check(double{});
}

// Debian's libopenblas-serial fails the first of these, thousands of times.
TEST(Gemm, IsExactFromSeveralThreadsAtOnce) {
  EXPECT_EQ(wrong_products<double>(7, 9, 5, 200'000), 0);
  EXPECT_EQ(wrong_products<float>(96, 96, 96, 200), 0);
}

TEST(Gemm, KnowsWhatABlasReadsInPlace) {
  EXPECT_TRUE(is_blas_matrix(4, 3, {3, 1}));
  EXPECT_TRUE(is_blas_matrix(4, 3, {7, 1}));
  EXPECT_TRUE(is_blas_matrix(4, 3, {1, 4}));
  EXPECT_FALSE(is_blas_matrix(4, 3, {6, 2}));
  EXPECT_FALSE(is_blas_matrix(4, 3, {2, 1}));  // rows overlap
  EXPECT_TRUE(is_blas_matrix(1, 3, {0, 5}));
  EXPECT_TRUE(is_blas_matrix(4, 1, {5, 0}));
}

}  // namespace
}  // namespace doppler
