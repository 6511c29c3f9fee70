#include "doppler/objective.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "doppler/base/rng.h"
#include "doppler/sim/simulator.h"

namespace doppler {
namespace {

// The error of a mean of 31 sums of eight or sixteen draws of sigma 0.2 is a fortieth of them at most.
constexpr double kSampling = 0.05;

// Eight pairs of ops of 1 s; both ops of a pair are needed before the next may begin.
struct Ladder {
  explicit Ladder(double jitter)
      : problem(make_graph(), Machine("two", {uniform_machine(2).device(0), uniform_machine(2).device(1)},
                                      std::vector<Link>(4), Links::free, jitter)) {
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
  Problem problem;
  Placement side_by_side, on_one;
};

TEST(TheExactObjective, IsTheSimulatorsMakespan) {
  const Ladder ladder(0.2);
  ExactObjective objective(ladder.problem);
  EXPECT_TRUE(objective.exact());
  EXPECT_EQ(objective.value(ladder.side_by_side), 8);
  EXPECT_EQ(objective.another()->value(ladder.on_one), 16);
  EXPECT_EQ(objective.simulate(ladder.on_one).makespan, 16);
}

TEST(TheExpectedObjective, IsTheExactOneWhereTimesDoNotVary) {
  const Ladder ladder(0);
  EXPECT_EQ(ExpectedObjective(ladder.problem).value(ladder.side_by_side), 8);
}

TEST(TheExpectedObjective, ContainsWaitingForTheSlowerOfTwo) {
  const Ladder ladder(0.2);
  ExpectedObjective objective(ladder.problem);
  EXPECT_FALSE(objective.exact());
  // The larger of two normal draws is sigma / sqrt(pi) above their mean on average; a lognormal factor differs little.
  const Seconds longer = 8 * (1 + 0.2 / std::sqrt(std::numbers::pi));
  EXPECT_NEAR(objective.value(ladder.side_by_side), longer, kSampling * longer);
  // Nobody waits on a single device.
  EXPECT_NEAR(objective.value(ladder.on_one), 16, kSampling * 16);
}

TEST(TheExpectedObjective, IsTheMeanOfItsDraws) {
  // The draws are those of Simulator with the seeds that follow from the rules' seed; 31 of them.
  const Ladder ladder(0.2);
  ExpectedObjective objective(ladder.problem);
  const std::vector<Seconds> values = objective.makespans(ladder.side_by_side);
  ASSERT_EQ(values.size(), ExpectedObjective::kDraws);
  Seconds sum = 0;
  for (std::size_t draw = 0; draw < values.size(); ++draw) {
    EXPECT_EQ(values[draw], Simulator(ladder.problem, {0.2, mix(0, draw)}).makespan(ladder.side_by_side));
    sum += values[draw];
  }
  EXPECT_DOUBLE_EQ(objective.value(ladder.side_by_side), sum / ExpectedObjective::kDraws);
  EXPECT_EQ(objective.another()->value(ladder.side_by_side), objective.value(ladder.side_by_side));
  const std::vector<Placement> both = {ladder.side_by_side, ladder.on_one};
  EXPECT_EQ(objective.values(both),
            (std::vector<Seconds>{objective.value(ladder.side_by_side), objective.value(ladder.on_one)}));
}

TEST(TheExpectedObjective, FollowsFromTheSeed) {
  const Ladder ladder(0.2);
  const auto with_seed = [&](std::uint64_t seed) {
    return ExpectedObjective(ladder.problem.with(Rules{.seed = seed})).value(ladder.side_by_side);
  };
  EXPECT_EQ(with_seed(1), with_seed(1));
  EXPECT_NE(with_seed(1), with_seed(2));
}

TEST(TheExpectedObjective, AcceptsThePublishedTieRule) {
  const Ladder ladder(0.2);
  EXPECT_GT(ExpectedObjective(ladder.problem.with(Rules{.ties = Ties::published})).value(ladder.side_by_side), 8);
}

}  // namespace
}  // namespace doppler
