#include "doppler/place/list/random.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/problems.h"

namespace doppler {
namespace {

MethodOptions with_seed(std::uint64_t seed) {
  MethodOptions options;
  options.seed = seed;
  return options;
}

TEST(Random, UsesEveryDeviceEquallyOften) {
  constexpr int kOps = 3000;
  const Problem world(test::graph_of(std::vector<Seconds>(kOps, 1.0), {}), test::machine_of({"a", "a", "a"}));
  std::vector<int> count(3, 0);
  for (const DeviceId device : test::run(random, world, with_seed(1)).placement.device_of_op) ++count[device];
  // Five standard deviations of a binomial count.
  for (const int ops : count) EXPECT_NEAR(ops, kOps / 3, 5 * std::sqrt(kOps * (1.0 / 3) * (2.0 / 3)));
}

TEST(Random, FollowsTheSeed) {
  const Problem world(test::graph_of(std::vector<Seconds>(100, 1.0), {}), test::machine_of({"a", "a"}));
  EXPECT_EQ(test::run(random, world, with_seed(1)).placement, test::run(random, world, with_seed(1)).placement);
  EXPECT_NE(test::run(random, world, with_seed(1)).placement, test::run(random, world, with_seed(2)).placement);
}

}  // namespace
}  // namespace doppler
