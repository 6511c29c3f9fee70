#include "doppler/bounds.h"

#include <gtest/gtest.h>

#include "doppler/bounds/communication_bound.h"
#include "doppler/bounds/destructive_bound.h"
#include "doppler/bounds/work_bound.h"
#include "doppler/graph/generate.h"
#include "doppler/objective.h"
#include "tests/support/small_graphs.h"

namespace doppler {
namespace {

using namespace test;

std::vector<Seconds> heads(const Problem& problem) {
  const Relaxation relaxation = relax(problem);
  std::vector<Seconds> head(problem.op_count(), 0.0);
  HeadFinder(relaxation, problem.op_count()).raise(head);
  return head;
}

std::vector<Seconds> tails(const Problem& problem) {
  const Relaxation reversed = relax(problem).reversed();
  std::vector<Seconds> tail(problem.op_count(), 0.0);
  HeadFinder(reversed, problem.op_count()).raise(tail);
  return tail;
}

TEST(APreemptiveBound, RunsTheLargestTailFirst) {
  // Head 0, work 4, tail 0 is interrupted at 1 by head 1, work 2, tail 6: ends 3, with tail 9. The first ends
  // at 6.
  std::vector<HeadTailWork> tasks = {{0, 4, 0}, {1, 2, 6}};
  EXPECT_EQ(preemptive_bound(tasks, 1), 9);
  // Three equal tasks on two slots, spread at will: 3 * 4 / 2 = 6.
  tasks = {{0, 4, 0}, {0, 4, 0}, {0, 4, 0}};
  EXPECT_EQ(preemptive_bound(tasks, 2), 6);
  // Two that come late: 10 + 8 / 2 + 1 = 15, more than the one that comes early.
  tasks = {{0, 4, 0}, {10, 4, 1}, {10, 4, 1}};
  EXPECT_EQ(preemptive_bound(tasks, 2), 15);
  EXPECT_EQ(preemptive_bound({}, 2), 0);
}

TEST(AWorkBound, IsWorkOverSlotsOnEqualDevices) {
  // (3 + 4 + 5) / (2 devices × 2 slots) = 3
  const Problem world(SmallGraph{anywhere({3, 4, 5}), {}}.build(), machine_of({"a", "a"}, 0, 2));
  EXPECT_EQ(work_bound(world), 3);
}

TEST(AWorkBound, SplitsWorkOverUnequalDevicesAtBest) {
  // Four ops take 1 on the fast device and 3 on the slow: three on the fast one, one on the slow, both end
  // at 3.
  const std::map<std::string, Seconds> times = {{"fast", 1}, {"slow", 3}};
  const Problem world(SmallGraph{{times, times, times, times}, {}}.build(), machine_of({"fast", "slow"}));
  EXPECT_NEAR(work_bound(world), 3, 1e-5);  // the search for prices stops at this precision
  EXPECT_LE(work_bound(world), 3);
}

TEST(AWorkBound, KnowsPins) {
  // All four ops of time 2 are pinned to one of the two devices.
  const Problem world(SmallGraph{anywhere({2, 2, 2, 2}), {}}.build(), machine_of({"a", "a"}), {},
                      {{0, 1}, {1, 1}, {2, 1}, {3, 1}});
  EXPECT_NEAR(work_bound(world), 8, 1e-5);
}

TEST(AHead, OfAJoinPaysForOneTransferOrForTheSecondProducer) {
  // Producers of 10 and 8. Both on the join's device: 18. One elsewhere: it arrives at 10 + 5 or 8 + 6. The
  // best is to move the second: max(10, 14) = 14.
  const Problem world(SmallGraph{anywhere({10, 8, 1}), {{0, 2, 5}, {1, 2, 6}}}.build(), machine_of({"a", "a"}));
  EXPECT_EQ(heads(world)[2], 14);
  // With expensive transfers both producers run on the join's device.
  const Problem expensive(SmallGraph{anywhere({10, 8, 1}), {{0, 2, 50}, {1, 2, 60}}}.build(), machine_of({"a", "a"}));
  EXPECT_EQ(heads(expensive)[2], 18);
  EXPECT_EQ(lower_bound(expensive).value, 19);
  EXPECT_EQ(lower_bound(expensive).kind, LowerBound::Kind::communication);
}

TEST(AHead, OnADeviceWithTwoSlotsIsNotSerial) {
  // As above, but the two producers run side by side: the join starts at 10 at the earliest, and no bound
  // says more than (10 + 8) / 2 for the two of them.
  const Problem world(SmallGraph{anywhere({10, 8, 1}), {{0, 2, 50}, {1, 2, 60}}}.build(), machine_of({"a", "a"}, 0, 2));
  EXPECT_EQ(heads(world)[2], 10);
  EXPECT_EQ(lower_bound(world).value, 11);
}

TEST(ATail, OfAForkMirrorsTheHeadOfAJoin) {
  // After the fork's end, consumers of 10 and 8: one after the other 18, or the second elsewhere, 6 + 8 = 14.
  const Problem world(SmallGraph{anywhere({1, 10, 8}), {{0, 1, 5}, {0, 2, 6}}}.build(), machine_of({"a", "a"}));
  EXPECT_EQ(tails(world)[0], 14);
}

TEST(AHead, SeesProducersFurtherUp) {
  // Two chains 4 -> 0 meet; moving after the first op costs 20, after the second 1: cheap there. So the
  // chains run on two devices and the join starts at 5; but if moving costs 20 at both places, all four run
  // on one device: 8.
  const SmallGraph cheap = {anywhere({4, 4, 0, 0, 1}), {{0, 2, 20}, {1, 3, 20}, {2, 4, 1}, {3, 4, 1}}};
  EXPECT_EQ(heads(Problem(cheap.build(), machine_of({"a", "a"})))[4], 5);
  const SmallGraph dear = {anywhere({4, 4, 0, 0, 1}), {{0, 2, 20}, {1, 3, 20}, {2, 4, 20}, {3, 4, 20}}};
  EXPECT_EQ(heads(Problem(dear.build(), machine_of({"a", "a"})))[4], 8);
}

TEST(AHead, PaysForCertainTransfers) {
  // Producer and consumer are pinned to different devices: 2 + 7.
  const Problem world(SmallGraph{anywhere({2, 1}), {{0, 1, 7}}}.build(), machine_of({"a", "a"}), {}, {{0, 0}, {1, 1}});
  EXPECT_EQ(heads(world)[1], 9);
}

TEST(AHead, RunsAColocatedGroupSerially) {
  // Transfers are free, but the three ops share a device: 3 + 4 before the join.
  const Problem world(SmallGraph{anywhere({3, 4, 1}), {{0, 2, 0}, {1, 2, 0}}, {"g", "g", "g"}}.build(),
                      machine_of({"a", "a"}));
  EXPECT_EQ(heads(world)[2], 7);
}

TEST(ALowerBound, TakesTheFastestDeviceOfEachOp) {
  // A chain whose ops are fast on different devices: 1 + 2 without the transfer, or 1 + 9, 9 + 2 on one
  // device. Moving costs 3, so 1 + 3 + 2 = 6 is best; the bound may say no more, and says the critical path
  // at least.
  const Problem world(SmallGraph{{{{"x", 1}, {"y", 9}}, {{"x", 9}, {"y", 2}}}, {{0, 1, 3}}}.build(),
                      machine_of({"x", "y"}));
  EXPECT_GE(lower_bound(world).value, 3);
  EXPECT_LE(lower_bound(world).value, 6);
}

TEST(ALowerBound, FitsWorkBetweenHeadsAndTails) {
  // A source of 1, six ops of 2, a sink of 1, no transfer times, two devices: 1 + 6 * 2 / 2 + 1 = 8; work
  // alone says 7 and the path 4.
  SmallGraph graph{anywhere({1, 2, 2, 2, 2, 2, 2, 1}), {}};
  for (OpId op = 1; op <= 6; ++op) {
    graph.edges.push_back({0, op, 0});
    graph.edges.push_back({op, 7, 0});
  }
  const LowerBound bound = lower_bound(Problem(graph.build(), machine_of({"a", "a"})));
  EXPECT_EQ(bound.value, 8);
}

TEST(ALowerBound, ContradictsWhatLeavesDevicesIdleAtTheEnd) {
  // Four devices; eight ops w of 10 and two joins, each fed by 10 + 10 in front of it that cannot be moved
  // for less than 100: pairs u0, u1 of one join share its device. Each u needs two of the w, at no cost for
  // moving. The joins' pairs occupy only two devices in the last 10, so 10 of the 12 ops must be done before:
  // T >= 10 + 10 * 10 / 4 = 35, while work says 120 / 4 = 30 and the path 20.
  SmallGraph graph{anywhere({10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 0, 0}), {}};
  for (OpId u = 8; u < 12; ++u) {
    graph.edges.push_back({2 * (u - 8), u, 0});
    graph.edges.push_back({2 * (u - 8) + 1, u, 0});
    graph.edges.push_back({u, u < 10 ? 12u : 13u, 100});
  }
  const LowerBound bound = lower_bound(Problem(graph.build(), machine_of({"a", "a", "a", "a"})));
  EXPECT_EQ(bound.kind, LowerBound::Kind::contradiction);
  EXPECT_EQ(bound.value, 35);
}

TEST(ALowerBound, IsAnIntegerIfAllTimesAre) {
  // 5 * 1 / 2 = 2.5: no execution of unit times ends at a half.
  const Problem world(SmallGraph{anywhere({1, 1, 1, 1, 1}), {}}.build(), machine_of({"a", "a"}));
  EXPECT_EQ(lower_bound(world).value, 3);
  const Problem halves(SmallGraph{anywhere({0.5, 1, 1, 1, 1}), {}}.build(), machine_of({"a", "a"}));
  EXPECT_NEAR(lower_bound(halves).value, 2.25, 1e-4);
}

TEST(ALowerBound, NeverExceedsTheOptimumOfRandomGraphs) {
  Rng rng(1);
  int tight = 0, count = 0;
  for (int i = 0; i < 300; ++i, ++count) {
    const bool wide = rng.below(2) == 0;
    const SmallGraph small = random_small_graph(rng, wide ? 5 : 6);
    const Problem world(small.build(), machine_of(std::vector<std::string>(wide ? 3 : 2, "a")),
                        rules_of(Discipline::ordered));
    const Seconds optimum = best_by_brute_force(world);
    const LowerBound bound = lower_bound(world);
    ASSERT_LE(bound.value, optimum) << "graph " << i << ", kind " << to_string(bound.kind);
    tight += bound.value == optimum;
  }
  EXPECT_GT(tight, count / 2);  // measured: three of four
}

TEST(ALowerBound, HoldsWithSlotsSpeedsPinsGroupsAndChannels) {
  Rng rng(2);
  for (int i = 0; i < 300; ++i) {
    MixedProblem mixed = random_mixed_problem(rng);
    Rules rules = rules_of(Discipline::ordered);
    rules.links = static_cast<Links>(rng.below(3));
    const Problem world(std::move(mixed.graph), std::move(mixed.machine), rules, mixed.pins);
    const LowerBound bound = lower_bound(world);
    ASSERT_LE(bound.value, best_by_brute_force(world)) << "graph " << i << ", kind " << to_string(bound.kind);
  }
}

TEST(AnExpectedBound, IsTheMeanOfTheBoundsOfTheDraws) {
  // A chain of three ops of 1 s on two devices: each draw is bounded by the sum of its own times, which is the makespan
  // on one device.
  GraphBuilder builder("chain");
  for (OpId op = 0; op < 3; ++op) builder.add_op({.explicit_times = {{"*", 1.0}}});
  for (OpId op = 0; op < 2; ++op) builder.add_consumer(builder.add_tensor(op, 0, 1.0), op + 1);
  const Problem problem(std::move(builder).build(), uniform_machine(2).with_jitter(0.3));
  const Placement on_one{.device_of_op = {0, 0, 0}};
  const Seconds expected = ExpectedObjective(problem).value(on_one);
  EXPECT_NEAR(expected_bound(problem, Draws{}.count), expected, 1e-9 * expected);
  EXPECT_LE(expected_bound(problem, Draws{}.count), expected);
  EXPECT_EQ(expected_bound(problem, 0), 0);
}

TEST(AnExpectedBound, IsNeverAboveAMeanOfTheSameDraws) {
  Rng rng(5);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Problem problem(generate_layered({.ops = 40, .width = 5, .degree = 2, .seed = seed, .costs = {}}),
                          load_machine("p100x4").with_jitter(0.2), Rules{.seed = seed});
    const Seconds bound = expected_bound(problem, Draws{}.count);
    EXPECT_GT(bound, 0);
    for (int i = 0; i < 5; ++i) {
      Placement placement;
      for (OpId op = 0; op < 40; ++op) placement.device_of_op.push_back(rng.below(4));
      EXPECT_LE(bound, ExpectedObjective(problem).value(placement));
    }
  }
}

}  // namespace
}  // namespace doppler
