#include "doppler/place/list/single.h"

#include <gtest/gtest.h>

#include "doppler/errors.h"
#include "tests/support/problems.h"

namespace doppler {
namespace {

Graph two_ops_slow_and_fast(Bytes parameters = 0) {
  GraphBuilder builder("two");
  for (int i = 0; i < 2; ++i) {
    OpSpec op;
    op.explicit_times = {{"slow", 4}, {"fast", 1}};
    op.parameter_bytes = parameters;
    builder.add_op(std::move(op));
  }
  return std::move(builder).build();
}

TEST(Single, TakesTheFasterDevice) {
  const Problem world(two_ops_slow_and_fast(), test::machine_of({"slow", "fast"}));
  const Proposal proposal = test::run(single, world, {});
  EXPECT_EQ(proposal.placement.device_of_op, (std::vector<DeviceId>{1, 1}));
  EXPECT_EQ(proposal.evaluations, 2u);
  EXPECT_EQ(test::makespan(world, proposal), 2);
}

TEST(Single, SaysThatItCannotBeWhereOpsArePinnedElsewhere) {
  const Problem world(two_ops_slow_and_fast(), test::machine_of({"slow", "fast"}), {}, {{0, 0}, {1, 1}});
  EXPECT_THROW(test::run(single, world, {}), InfeasibleError);
  const Problem on_slow(two_ops_slow_and_fast(), test::machine_of({"slow", "fast"}), {}, {{0, 0}});
  EXPECT_EQ(test::run(single, on_slow, {}).placement.device_of_op, (std::vector<DeviceId>{0, 0}));
}

TEST(Single, SaysThatItCannotBeWhereNoDeviceHoldsTheGraph) {
  Device small;
  small.name = small.type = "slow";
  small.memory = 15;  // two ops have 20 bytes
  Device other = small;
  other.name = "other";
  const Problem world(two_ops_slow_and_fast(10), Machine("m", {small, other}, std::vector<Link>(4)));
  EXPECT_THROW(test::run(single, world, {}), InfeasibleError);
  EXPECT_EQ(test::run(near_single, world, {}).placement.device_of_op.size(), 2u);
}

TEST(NearSingle, LeavesPinnedOpsWhereTheyAre) {
  const Problem world(two_ops_slow_and_fast(), test::machine_of({"slow", "fast"}), {}, {{0, 0}});
  const Placement placement = test::run(near_single, world, {}).placement;
  EXPECT_EQ(placement.device_of_op, (std::vector<DeviceId>{0, 1}));
  EXPECT_EQ(placement.cause_of_op, (std::vector<Cause>{Cause::pinned, Cause::chosen}));
}

TEST(Single, TakesTheSlowerDeviceIfTheFasterIsTooSmall) {
  Device slow, fast;
  slow.name = slow.type = "slow";
  fast.name = fast.type = "fast";
  fast.memory = 15;  // two ops have 20 bytes
  const Problem world(two_ops_slow_and_fast(10), Machine("m", {slow, fast}, std::vector<Link>(4)));
  EXPECT_EQ(test::run(single, world, {}).placement.device_of_op, (std::vector<DeviceId>{0, 0}));
}

TEST(Single, AnswersWithoutABudget) {
  const Problem world(two_ops_slow_and_fast(), test::machine_of({"slow", "fast"}));
  MethodOptions options;
  options.budget = Budget::for_time(0);
  EXPECT_EQ(test::run(single, world, options).evaluations, 1u);
}

}  // namespace
}  // namespace doppler
