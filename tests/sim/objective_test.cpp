#include "doppler/objective.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/sim/sampled_evaluator.h"
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
  ASSERT_EQ(values.size(), Draws{}.count);
  Seconds sum = 0;
  for (std::size_t draw = 0; draw < values.size(); ++draw) {
    EXPECT_EQ(values[draw], Simulator(ladder.problem, {0.2, mix(0, draw)}).makespan(ladder.side_by_side));
    sum += values[draw];
  }
  EXPECT_DOUBLE_EQ(objective.value(ladder.side_by_side), sum / Draws{}.count);
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

TEST(TheExpectedObjective, HasOtherDrawsInOtherStreams) {
  const Ladder ladder(0.2);
  ExpectedObjective reported(ladder.problem), again(ladder.problem, Draws{31, 0});
  EXPECT_EQ(again.makespans(ladder.side_by_side), reported.makespans(ladder.side_by_side));
  const auto other = reported.redrawn({31, 1});
  EXPECT_NE(other->value(ladder.side_by_side), reported.value(ladder.side_by_side));
  // Ten times as many draws have a third of the error.
  const Seconds longer = 8 * (1 + 0.2 / std::sqrt(std::numbers::pi));
  EXPECT_NEAR(reported.redrawn({310, 2})->value(ladder.side_by_side), longer, 0.4 * kSampling * longer);
  EXPECT_EQ(ExactObjective(ladder.problem).redrawn({31, 1}), nullptr);
  EXPECT_EQ(ExactObjective(ladder.problem).sampled(), nullptr);
}

TEST(TheQuantileObjective, IsWhatAllButOneRunInTwentyKeep) {
  const Ladder ladder(0.2);
  // 21 draws: the second longest, exactly, because 0.95 · 20 = 19 is the index counted from 0.
  std::vector<Seconds> makespans = ExpectedObjective(ladder.problem, Draws{21, 4}).makespans(ladder.side_by_side);
  std::sort(makespans.begin(), makespans.end());
  QuantileObjective objective(ladder.problem, {21, 4});
  EXPECT_DOUBLE_EQ(objective.value(ladder.side_by_side), makespans[19]);
  EXPECT_EQ(objective.another()->value(ladder.side_by_side), objective.value(ladder.side_by_side));
  EXPECT_FALSE(objective.exact());
}

TEST(AnExpectation, HasTheMeanItsErrorAndTheQuantileOfTheReportedDraws) {
  const Ladder ladder(0.2);
  const std::vector<Seconds> makespans = ExpectedObjective(ladder.problem).makespans(ladder.side_by_side);
  const Expectation found = expectation_of(ladder.problem, ladder.side_by_side);
  EXPECT_DOUBLE_EQ(found.mean, ExpectedObjective(ladder.problem).value(ladder.side_by_side));
  double squares = 0;
  for (const Seconds makespan : makespans) squares += (makespan - found.mean) * (makespan - found.mean);
  EXPECT_NEAR(found.error, std::sqrt(squares / 30 / 31), 1e-12);
  EXPECT_GT(found.p95, found.mean);
  EXPECT_LE(found.p95, *std::max_element(makespans.begin(), makespans.end()));
}

TEST(AnObjective, IsTheOneOfTheNameOrTheUsual) {
  const Ladder steady(0), varying(0.1);
  EXPECT_EQ(usual_objective(steady.problem)->name(), "exact");
  EXPECT_EQ(usual_objective(varying.problem)->name(), "expected");
  EXPECT_EQ(make_objective("exact", varying.problem)->name(), "exact");
  EXPECT_EQ(make_objective("p95", varying.problem)->name(), "p95");
  EXPECT_THROW(make_objective("median", varying.problem), InputError);
  EXPECT_THROW(make_objective("expected", steady.problem), InputError);
}

TEST(ASampledEvaluator, AcceptsExactlyWhatAllItsDrawsAccept) {
  const Ladder ladder(0.2);
  SampledEvaluator race(ladder.problem, 0.2);
  race.draw(7);
  ExpectedObjective all(ladder.problem, 0.2, {SampledEvaluator::kDraws, 7});
  Placement current = ladder.side_by_side;
  EXPECT_DOUBLE_EQ(race.reset(current.device_of_op, {}), all.value(current));
  Rng rng(1);
  std::size_t accepted = 0;
  for (int step = 0; step < 300; ++step) {
    Placement next = current;
    DeviceId& device = next.device_of_op[rng.below(16)];
    device = 1 - device;
    const Seconds limit = all.value(current) * rng.uniform(0.98, 1.3);
    const Seconds found = race.change(next.device_of_op, {}, limit, rng);
    // What is accepted is so by the mean over all draws; what few draws reject was a chance that is not looked into.
    if (found == Costs::kNever) continue;
    EXPECT_DOUBLE_EQ(found, all.value(next));
    EXPECT_LE(found, limit);
    current = next;
    ++accepted;
  }
  EXPECT_GT(accepted, 20u);
  // Racing pays, although most changes are acceptable here: rejecting took few of the sixteen simulations.
  EXPECT_LT(race.simulations(), 300u * SampledEvaluator::kDraws * 9 / 10);
}

}  // namespace
}  // namespace doppler
