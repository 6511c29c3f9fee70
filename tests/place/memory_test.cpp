#include "doppler/place/memory.h"

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/place/list/simple_placements.h"
#include "tests/support/problems.h"

namespace doppler {
namespace {

Graph ops_with_parameters(const std::vector<Bytes>& parameters) {
  GraphBuilder builder("weights");
  for (const Bytes bytes : parameters) {
    OpSpec op;
    op.explicit_times["*"] = 1;
    op.parameter_bytes = bytes;
    builder.add_op(std::move(op));
  }
  return std::move(builder).build();
}

// Three producers and their three consumers, 10 bytes between each pair.
Graph three_pairs() { return test::graph_of({1, 1, 1, 1, 1, 1}, {{0, 3, 0, 10}, {1, 4, 0, 10}, {2, 5, 0, 10}}); }

TEST(AStaticMemory, AddsParametersAndTakesTheLargestWorkingSet) {
  // The ops of a chain 0 -> 1 -> 2 with tensors of 10 and 20 bytes hold 10, 30 and 20 bytes while they run.
  const Problem world(test::graph_of({1, 1, 1}, {{0, 1, 0, 10}, {1, 2, 0, 20}}), test::machine_of({"a"}, 29));
  StaticMemory memory(world);
  EXPECT_TRUE(memory.fits(0, 0));
  EXPECT_EQ(memory.excess(1, 0), 1u);
  memory.add(0, 0);
  EXPECT_TRUE(memory.fits(2, 0));  // the largest of 10 and 20, not the sum
}

TEST(AStaticMemory, KeepsTensorsThatNobodyReads) {
  GraphBuilder builder("results");
  for (int i = 0; i < 2; ++i) {
    OpSpec op;
    op.explicit_times["*"] = 1;
    builder.add_tensor(builder.add_op(std::move(op)), 10);
  }
  const Problem world(std::move(builder).build(), test::machine_of({"a"}, 19));
  StaticMemory memory(world);
  memory.add(0, 0);
  EXPECT_EQ(memory.excess(1, 0), 1u);  // 10 + 10 > 19
}

Proposal fit(const Problem& problem, Proposal proposal) {
  ExactObjective objective(problem);
  return fit_in_memory(objective, std::move(proposal), Budget::unlimited());
}

TEST(ARepair, LeavesAPlacementAloneThatFits) {
  const Problem world(three_pairs(), test::machine_of({"a", "a"}, 30));
  const Placement all_on_one = one_device(world, 0);
  const Proposal proposal = fit(world, {all_on_one});
  EXPECT_EQ(proposal.placement, all_on_one);
  EXPECT_EQ(proposal.evaluations, 1u);
}

TEST(ARepair, MovesUnitsOffADeviceWhoseLiveTensorsOverflow) {
  // First come first served runs the three producers before any consumer, so 30 bytes wait; 25 are there.
  const Problem world(three_pairs(), test::machine_of({"a", "a"}, 25));
  const Placement all_on_one = one_device(world, 0);
  ASSERT_FALSE(test::simulate(world, all_on_one).feasible());
  const Proposal proposal = fit(world, {all_on_one});
  EXPECT_TRUE(test::simulate(world, proposal.placement).feasible());
  for (OpId op = 0; op < 6; ++op)
    EXPECT_EQ(proposal.placement.cause_of_op[op],
              proposal.placement.device_of_op[op] == 0 ? Cause::chosen : Cause::memory);
}

TEST(ARepair, MovesWholeColocationUnits) {
  GraphBuilder builder("groups");
  for (const char* group : {"g", "g", "", ""}) {
    OpSpec op;
    op.explicit_times["*"] = 1;
    op.parameter_bytes = 10;
    op.group = group;
    builder.add_op(std::move(op));
  }
  // 40 bytes on one device of 20: the unit {0, 1} makes up for the excess of 20 exactly.
  const Problem world(std::move(builder).build(), test::machine_of({"a", "a"}, 20));
  const Proposal proposal = fit(world, {one_device(world, 0)});
  EXPECT_EQ(proposal.placement.device_of_op, (std::vector<DeviceId>{1, 1, 0, 0}));
  EXPECT_EQ(proposal.placement.cause_of_op[1], Cause::colocated);
}

TEST(ARepair, NamesTheOpTheDeviceTheNeedAndTheCapacityIfAnOpIsTooLarge) {
  const Problem world(ops_with_parameters({10, 100}), test::machine_of({"a", "a"}, 50));
  try {
    fit(world, {one_device(world, 0)});
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(),
                 "weights: op 'op1' needs 100 bytes on device 'd0', parameters and live tensors included; required at "
                 "most 50, and no other device suffices even if it is empty");
  }
}

TEST(ARepair, SaysSoIfItFoundNothingThatFits) {
  const Problem world(ops_with_parameters({30, 30, 30}), test::machine_of({"a", "a"}, 50));
  try {
    fit(world, {one_device(world, 0)});
    FAIL();
  } catch (const InfeasibleError& error) {
    // Two of three in 50 bytes: whatever is moved, 60 remain somewhere.
    EXPECT_NE(std::string(error.what()).find("needs 60 bytes on device"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("no placement that fits was found"), std::string::npos);
  }
}

TEST(ARepair, ProvesThatMoreThanAllDevicesHoldDoesNotFit) {
  // 4 x 30 = 120 bytes; two devices hold 50 each.
  const Problem world(ops_with_parameters({30, 30, 30, 30}), test::machine_of({"a", "a"}, 50));
  try {
    fit(world, {one_device(world, 0)});
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(),
                 "weights: parameters, and tensors that no op reads, need 120 bytes; required at most 100, the memory "
                 "of all devices of 'test' together");
  }
}

TEST(FillByMemory, GivesEveryDeviceTheSameFractionAlsoWhereMoreIsProducedThanIsHeld) {
  // A chain produces 5 x 12 = 60 bytes, two devices hold 24 each: each gets 30, which is two tensors of 12 and no
  // third.
  const Problem world(
      test::graph_of({1, 1, 1, 1, 1, 1}, {{0, 1, 0, 12}, {1, 2, 0, 12}, {2, 3, 0, 12}, {3, 4, 0, 12}, {4, 5, 0, 12}}),
      test::machine_of({"a", "a"}, 24));
  EXPECT_EQ(fill_by_memory(world).device_of_op, (std::vector<DeviceId>{0, 0, 1, 1, 1, 1}));
}

TEST(ARepair, EndsWhenTimeIsUp) {
  // Three of 30 bytes do not fit on two devices of 50, whatever is tried; 20 000 ops of none make each try long.
  std::vector<Bytes> parameters(20'000, 0);
  std::fill(parameters.begin(), parameters.begin() + 3, 30);
  const Problem world(ops_with_parameters(parameters), test::machine_of({"a", "a"}, 50));
  ExactObjective objective(world);
  EXPECT_THROW(fit_in_memory(objective, {one_device(world, 0)}, Budget::for_time(0)), OutOfTime);
  // What was given up half-way does not disturb what comes after it.
  EXPECT_EQ(objective.value(one_device(world, 0)), 20'000);
  EXPECT_THROW(fit_in_memory(objective, {one_device(world, 0)}, Budget::unlimited()), InfeasibleError);
}

}  // namespace
}  // namespace doppler
