#include "doppler/sim/expected_makespan.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace doppler {
namespace {

// The error of a median of 31 sums of eight or sixteen draws of sigma 0.2 is a fortieth of them at most.
constexpr double kSampling = 0.05;

// Eight pairs of ops of 1 s; both ops of a pair are needed before the next may begin.
struct Ladder {
  explicit Ladder(double jitter)
      : graph(make_graph()),
        machine("two", {uniform_machine(2).device(0), uniform_machine(2).device(1)}, std::vector<Link>(4), Links::free,
                jitter) {
    for (DeviceId op = 0; op < 16; ++op) side_by_side.device_of_op.push_back(op % 2);
    on_one.device_of_op.assign(16, 0);
  }
  static Graph make_graph() {
    GraphBuilder builder("ladder");
    for (OpId op = 0; op < 16; ++op) builder.add_op({.explicit_times = {{"*", 1.0}}});
    for (OpId op = 0; op + 2 < 16; ++op) {
      const TensorId tensor = builder.add_tensor(op, 0, 0.0);
      const OpId next = op / 2 * 2 + 2;
      builder.add_consumer(tensor, next);
      builder.add_consumer(tensor, next + 1);
    }
    return std::move(builder).build();
  }
  Graph graph;
  Machine machine;
  Costs costs{graph, machine};
  Placement side_by_side, on_one;
};

TEST(TheExpectedMakespan, IsTheExactOneWhereTimesDoNotVary) {
  const Ladder ladder(0);
  const Problem problem(ladder.costs, {});
  EXPECT_EQ(expected_noise(problem), 0);
  EXPECT_EQ(expected_makespan(problem, ladder.side_by_side, 0), 8);
}

TEST(TheExpectedMakespan, ContainsWaitingForTheSlowerOfTwo) {
  const Ladder ladder(0.2);
  const Problem problem(ladder.costs, {});
  EXPECT_EQ(expected_noise(problem), 0.2);
  const std::vector<Placement> placements{ladder.side_by_side, ladder.on_one};
  const std::vector<Seconds> expected = expected_makespans(problem, placements, expected_noise(problem));
  // The larger of two normal draws is sigma / sqrt(pi) above their mean on average; a lognormal factor differs little.
  const Seconds longer = 8 * (1 + 0.2 / std::sqrt(std::numbers::pi));
  EXPECT_NEAR(expected[0], longer, kSampling * longer);
  // Nobody waits on a single device.
  EXPECT_NEAR(expected[1], 16, kSampling * 16);
}

TEST(TheExpectedMakespan, GoesByTheRulesBeforeTheMachine) {
  const Ladder ladder(0.2);
  EXPECT_EQ(expected_noise(Problem(ladder.costs, {.noise = 0.5})), 0.5);
}

TEST(TheExpectedMakespan, FollowsFromTheSeed) {
  const Ladder ladder(0.2);
  const auto with_seed = [&](std::uint64_t seed) {
    return expected_makespan(Problem(ladder.costs, {.seed = seed}), ladder.side_by_side, 0.2);
  };
  EXPECT_EQ(with_seed(1), with_seed(1));
  EXPECT_NE(with_seed(1), with_seed(2));
}

TEST(TheExpectedMakespan, AcceptsThePublishedTieRule) {
  const Ladder ladder(0.2);
  const Problem problem(ladder.costs, {.ties = Ties::published});
  EXPECT_GT(expected_makespan(problem, ladder.side_by_side, 0.2), 8);
}

}  // namespace
}  // namespace doppler
