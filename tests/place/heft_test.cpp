#include "doppler/place/list/heft.h"

#include <gtest/gtest.h>

#include "doppler/base/rng.h"
#include "tests/support/problems.h"

namespace doppler {
namespace {

TEST(Heft, RepeatsTheExampleOfItsPaper) {
  const Problem world(test::topcuoglu_graph(), test::machine_of({"p1", "p2", "p3"}),
                      test::rules_of(Discipline::ordered));
  const Proposal proposal = test::run(heft, world, {});
  // Figure 3(a): P1 runs 2 and 8, P2 runs 4, 6, 9 and 10, P3 runs 1, 3, 5 and 7; length 80.
  EXPECT_EQ(proposal.placement.device_of_op, (std::vector<DeviceId>{2, 0, 2, 1, 2, 1, 2, 0, 1, 1}));
  EXPECT_EQ(test::makespan(world, proposal), 80);
}

TEST(Heft, FillsGapsAndHandsOutTheirOrder) {
  // Upward ranks: 0: 2 + 4 + 3 = 9, 1: 3, 2: 2. On one device with a pin: 0 is pinned to y, 1 to x.
  // 0 at 0..2 on y, its tensor is on x at 6; 1 at 6..9; 2 (2) fits into the gap 0..6 of x, before 1.
  const Problem world(test::graph_of({2, 3, 2}, {{0, 1, 4}}), test::machine_of({"a", "a"}),
                      test::rules_of(Discipline::ordered), {{0, 1}, {1, 0}});
  const Proposal proposal = test::run(heft, world, {});
  EXPECT_EQ(proposal.placement.device_of_op, (std::vector<DeviceId>{1, 0, 0}));
  EXPECT_EQ(proposal.placement.priority, (std::vector<std::uint32_t>{0, 2, 1}));
  EXPECT_EQ(proposal.placement.cause_of_op, (std::vector<Cause>{Cause::pinned, Cause::pinned, Cause::earliest_finish}));
  EXPECT_EQ(test::makespan(world, proposal), 9);
}

TEST(Heft, UsesEverySlot) {
  const Problem world(test::graph_of({1, 1, 1, 1}, {}), test::machine_of({"a", "a"}, 0, 2));
  EXPECT_EQ(test::makespan(world, test::run(heft, world, {})), 1);
}

TEST(Heft, KeepsAGroupWhereItsFirstOpWent) {
  // 0 (5), 1 (4), 2 (3) without edges: 0 to x, 1 to y, 2 would finish first on y, but belongs to 0.
  GraphBuilder builder("group");
  for (const auto& [time, group] : {std::pair(5.0, "g"), {4.0, ""}, {3.0, "g"}}) {
    OpSpec op;
    op.explicit_times["*"] = time;
    op.group = group;
    builder.add_op(std::move(op));
  }
  const Problem world(std::move(builder).build(), test::machine_of({"a", "a"}));
  const Placement placement = test::run(heft, world, {}).placement;
  EXPECT_EQ(placement.device_of_op, (std::vector<DeviceId>{0, 1, 0}));
  EXPECT_EQ(placement.cause_of_op[2], Cause::colocated);
}

TEST(Heft, GoesElsewhereIfTheBestDeviceIsFull) {
  GraphBuilder builder("weights");
  for (int i = 0; i < 2; ++i) {
    OpSpec op;
    op.explicit_times = {{"fast", 1}, {"slow", 9}};
    op.parameter_bytes = 10;
    builder.add_op(std::move(op));
  }
  const Problem world(std::move(builder).build(), test::machine_of({"fast", "slow"}, 15));
  const Placement placement = test::run(heft, world, {}).placement;
  EXPECT_EQ(placement.device_of_op, (std::vector<DeviceId>{0, 1}));
  EXPECT_EQ(placement.cause_of_op, (std::vector<Cause>{Cause::earliest_finish, Cause::memory}));
}

// Under free links and strict order the simulator must find exactly what HEFT planned; a chain of zero-time
// ops and transfers is what breaks careless tie rules.
TEST(Heft, PlansWhatOrderedExecutionDoes) {
  Rng rng(11);
  std::vector<Seconds> times;
  std::vector<test::Edge> edges;
  for (OpId op = 0; op < 200; ++op) {
    times.push_back(rng.below(4));
    for (int i = 0; i < 2 && op > 0; ++i) edges.push_back({rng.below(op), op, static_cast<Seconds>(rng.below(3))});
  }
  const Problem world(test::graph_of(times, edges), test::machine_of({"a", "a", "a"}),
                      test::rules_of(Discipline::ordered));
  const Proposal proposal = test::run(heft, world, {});
  const Timeline timeline = test::simulate(world, proposal.placement);
  // Ranks ascend with start times, so nothing started at another time than planned overtook anything.
  for (std::size_t i = 1; i < timeline.executions.size(); ++i) {
    const auto &a = timeline.executions[i - 1], &b = timeline.executions[i];
    EXPECT_TRUE(a.start == b.start || proposal.placement.priority[a.op] < proposal.placement.priority[b.op]);
  }
}

}  // namespace
}  // namespace doppler
