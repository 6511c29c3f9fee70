#include "doppler/place/partition/metis.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/problems.h"

namespace doppler {
namespace {

// Two chains of 8 ops with dear tensors, and one cheap edge between them.
Graph two_chains() {
  std::vector<test::Edge> edges;
  for (OpId op = 0; op < 15; ++op)
    if (op != 7) edges.push_back({op, op + 1, 100});
  edges.push_back({3, 12, 1});
  return test::graph_of(std::vector<Seconds>(16, 1.0), edges);
}

TEST(Metis, CutsWhereLittleIsMoved) {
  const Problem world(two_chains(), test::machine_of({"a", "a"}));
  const Proposal proposal = test::run(metis, world, {});
  for (OpId op = 0; op < 16; ++op)
    EXPECT_EQ(proposal.placement.device_of_op[op], proposal.placement.device_of_op[op < 8 ? 0 : 8]);
  EXPECT_NE(proposal.placement.device_of_op[0], proposal.placement.device_of_op[8]);
  EXPECT_EQ(proposal.placement.cause_of_op[0], Cause::partition);
  EXPECT_EQ(proposal.evaluations, 50u);
  EXPECT_EQ(test::makespan(world, proposal),
            9);  // op 12 is the fifth of its chain and gets op 3's output at 5, not at 4
}

TEST(Metis, KeepsPinnedOpsAndFollowsThem) {
  const Problem world(two_chains(), test::machine_of({"a", "a"}), {}, {{0, 1}, {15, 0}});
  const Placement placement = test::run(metis, world, {}).placement;
  for (OpId op = 0; op < 16; ++op) EXPECT_EQ(placement.device_of_op[op], op < 8 ? 1u : 0u);
  EXPECT_EQ(placement.cause_of_op[0], Cause::pinned);
}

TEST(Metis, GivesAFastDeviceMore) {
  GraphBuilder builder("equal ops");
  for (int i = 0; i < 12; ++i) {
    OpSpec op;
    op.explicit_times = {{"fast", 1}, {"slow", 2}};
    builder.add_op(std::move(op));
  }
  const Problem world(std::move(builder).build(), test::machine_of({"slow", "fast"}));
  // 8 ops at 1 and 4 ops at 2.
  EXPECT_EQ(test::makespan(world, test::run(metis, world, {})), 8);
}

TEST(Metis, BalancesMemoryToo) {
  // All the parameters are in the first half, so balanced work alone would overflow a device.
  GraphBuilder builder("weights");
  for (int i = 0; i < 16; ++i) {
    OpSpec op;
    op.explicit_times["*"] = 1;
    op.parameter_bytes = i < 8 ? 10 : 0;
    builder.add_op(std::move(op));
  }
  const Problem world(std::move(builder).build(), test::machine_of({"a", "a"}, 50));
  EXPECT_TRUE(test::simulate(world, test::run(metis, world, {}).placement).feasible());
}

// METIS prints to standard output when it is asked for parts that cannot be; placements go there too.
TEST(Metis, IsQuietOnGraphsThatAreHardToDivide) {
  testing::internal::CaptureStdout();
  for (const DeviceId devices : {1, 2, 3, 4, 8}) {
    const std::vector<std::string> types(devices, "a");
    for (const std::vector<Seconds>& times : {std::vector<Seconds>{1},
                                              {1, 1, 1},
                                              {0, 0, 0, 0, 0},
                                              {1e6, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                                              {1e9, 1e6, 1e3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}}) {
      std::vector<test::Edge> chain;
      for (OpId op = 1; op < times.size(); ++op) chain.push_back({op - 1, op, 1e12});
      for (const auto& edges : {chain, std::vector<test::Edge>{}}) {
        const Problem world(test::graph_of(times, edges), test::machine_of(types));
        verify(world, test::run(metis, world, {}).placement);
      }
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace doppler
