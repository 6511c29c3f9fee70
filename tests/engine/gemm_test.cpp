#include "doppler/engine/gemm.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace doppler {
namespace {

// Small whole numbers, whose products and sums are exact in f32.
std::vector<float> whole_numbers(std::size_t count, unsigned start) {
  std::vector<float> result(count);
  for (float& value : result) value = static_cast<float>((start = start * 1103515245u + 12345u) >> 28) - 8;
  return result;
}

TEST(Gemm, IsExactFromSeveralThreadsAtOnce) {
  constexpr program::Index kSize = 96;
  constexpr int kThreads = 4, kRounds = 200;
  const std::vector<float> a = whole_numbers(kSize * kSize, 1), b = whole_numbers(kSize * kSize, 2);
  std::vector<float> expected(kSize * kSize, 0);
  for (std::size_t i = 0; i < kSize; ++i)
    for (std::size_t k = 0; k < kSize; ++k)
      for (std::size_t j = 0; j < kSize; ++j) expected[i * kSize + j] += a[i * kSize + k] * b[k * kSize + j];
  const GemmShape shape{.m = kSize, .n = kSize, .k = kSize, .a = {kSize, 1}, .b = {kSize, 1}, .c_row = kSize};
  std::vector<int> wrong(kThreads, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::vector<float> c(kSize * kSize);
      for (int round = 0; round < kRounds; ++round) {
        gemm(shape, a.data(), b.data(), c.data());
        wrong[static_cast<std::size_t>(t)] += c != expected;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
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
