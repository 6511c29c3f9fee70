#include "doppler/place/list/cpop.h"

#include <gtest/gtest.h>

#include "tests/support/problems.h"

namespace doppler {
namespace {

TEST(Cpop, RepeatsTheExampleOfItsPaper) {
  const Problem world(test::topcuoglu_graph(), test::machine_of({"p1", "p2", "p3"}),
                      test::rules_of(Discipline::ordered));
  const Proposal proposal = test::run(cpop, world, {});
  // The critical path 1, 2, 9, 10 runs in 16 + 19 + 12 + 7 = 54 on P2, in 66 on P1 and 63 on P3. Length 86.
  for (const OpId op : {0, 1, 8, 9}) {
    EXPECT_EQ(proposal.placement.device_of_op[op], 1u);
    EXPECT_EQ(proposal.placement.cause_of_op[op], Cause::critical_path);
  }
  EXPECT_EQ(test::makespan(world, proposal), 86);
}

TEST(Cpop, TakesTheDeviceThatMayRunMostOfThePath) {
  // The chain 0 -> 1 -> 2 is the path; 1 is pinned to d1, so d1 may run all of it.
  const Problem world(test::graph_of({1, 1, 1, 1}, {{0, 1, 5}, {1, 2, 5}}), test::machine_of({"a", "a"}), {}, {{1, 1}});
  const Placement placement = test::run(cpop, world, {}).placement;
  EXPECT_EQ(placement.device_of_op, (std::vector<DeviceId>{1, 1, 1, 0}));
  EXPECT_EQ(placement.cause_of_op,
            (std::vector<Cause>{Cause::critical_path, Cause::pinned, Cause::critical_path, Cause::earliest_finish}));
}

}  // namespace
}  // namespace doppler
