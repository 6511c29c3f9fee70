#include "doppler/base/parallel.h"

#include <atomic>
#include <vector>

#include <gtest/gtest.h>

#include "doppler/base/error.h"

namespace doppler {
namespace {

TEST(AParallelFor, CallsEachTaskOnce) {
  for (const unsigned threads : {1u, 2u, 7u}) {
    std::vector<std::atomic<int>> calls(100);
    parallel_for(100, threads, [&](unsigned i) { ++calls[i]; });
    for (const auto& count : calls) EXPECT_EQ(count, 1);
  }
}

TEST(AParallelFor, RethrowsTheFirstExceptionAndStops) {
  for (const unsigned threads : {1u, 3u}) {
    std::atomic<int> calls = 0;
    const auto task = [&](unsigned i) {
      ++calls;
      if (i == 0) throw InputError("task 0");
    };
    EXPECT_THROW(parallel_for(1'000'000, threads, task), InputError);
    EXPECT_LT(calls, 1'000'000);
  }
}

}  // namespace
}  // namespace doppler
