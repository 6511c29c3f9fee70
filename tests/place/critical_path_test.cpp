#include "doppler/place/list/critical_path.h"

#include <gtest/gtest.h>

#include "tests/support/problems.h"

namespace doppler {
namespace {

TEST(CriticalPath, TakesTheLargestBLevelWhereItStartsEarliest) {
  // 0 (2) -> 1 (2) over a transfer of 1; 2 (3) and 3 (1) alone. b-levels: 5, 2, 3, 1.
  // 0 at 0 on x; 2 at 0 on y; 1 at 2 on x (at 3 on y); 3 at 3 on y (at 4 on x). Makespan 4.
  const Problem world(test::graph_of({2, 2, 3, 1}, {{0, 1, 1}}), test::machine_of({"a", "a"}),
                      test::rules_of(Discipline::ordered));
  const Proposal proposal = test::run(critical_path, world, {});
  EXPECT_EQ(proposal.placement.priority, (std::vector<std::uint32_t>{0, 2, 1, 3}));
  EXPECT_EQ(proposal.placement.device_of_op[1], proposal.placement.device_of_op[0]);
  EXPECT_NE(proposal.placement.device_of_op[2], proposal.placement.device_of_op[0]);
  EXPECT_NE(proposal.placement.device_of_op[3], proposal.placement.device_of_op[0]);
  EXPECT_EQ(proposal.placement.cause_of_op, std::vector<Cause>(4, Cause::earliest_start));
  EXPECT_EQ(proposal.evaluations, 50u);
  EXPECT_EQ(test::makespan(world, proposal), 4);
}

TEST(CriticalPath, DrawsTiesByTheSeed) {
  const Problem world(test::graph_of(std::vector<Seconds>(20, 1.0), {}), test::machine_of({"a", "a"}));
  MethodOptions one, other;
  other.seed = 1;
  EXPECT_EQ(test::run(critical_path, world, one).placement, test::run(critical_path, world, one).placement);
  EXPECT_NE(test::run(critical_path, world, one).placement, test::run(critical_path, world, other).placement);
}

TEST(CriticalPath, StopsWhenItsEvaluationsAreUsedUp) {
  const Problem world(test::graph_of({1, 1}, {}), test::machine_of({"a", "a"}));
  MethodOptions options;
  options.budget = Budget::for_evaluations(3);
  EXPECT_EQ(test::run(critical_path, world, options).evaluations, 3u);
  options.budget = Budget::for_evaluations(0);
  EXPECT_EQ(test::run(critical_path, world, options).evaluations, 1u);
}

TEST(CriticalPath, AsPublishedTakesTheFrontOfTheReadyList) {
  // b-levels 1, 2: one op is most critical, so the number drawn is 0, and that is op 0 in the ready list.
  const Problem world(test::graph_of({1, 2}, {}), test::machine_of({"a"}));
  MethodOptions options;
  EXPECT_EQ(test::run(critical_path, world, options).placement.priority, (std::vector<std::uint32_t>{1, 0}));
  options.published = true;
  EXPECT_EQ(test::run(critical_path, world, options).placement.priority, (std::vector<std::uint32_t>{0, 1}));
}

TEST(CriticalPath, AsPublishedForgetsTheTimeSpentWaiting) {
  // 0 (10) on device 0, then 1 (5) pinned to 1, 2 (2) pinned to 0 and 3 (1), all after 0 and in this order.
  // Devices are free at 12 and 15, so 3 belongs on 0. As published they are loaded with 12 and 5, and 3 could
  // start at max(12, 10) or max(5, 10): on 1.
  const Problem world(test::graph_of({10, 5, 2, 1}, {{0, 1}, {0, 2}, {0, 3}}), test::machine_of({"a", "a"}), {},
                      {{0, 0}, {1, 1}, {2, 0}});
  MethodOptions options;
  EXPECT_EQ(test::run(critical_path, world, options).placement.device_of_op[3], 0u);
  options.published = true;
  EXPECT_EQ(test::run(critical_path, world, options).placement.device_of_op[3], 1u);
}

}  // namespace
}  // namespace doppler
