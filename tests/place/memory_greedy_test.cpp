#include "doppler/place/list/memory_greedy.h"

#include <gtest/gtest.h>

#include "tests/support/problems.h"

namespace doppler {
namespace {

Graph chain_of_weights(const std::vector<Bytes>& parameters, Bytes tensor) {
  GraphBuilder builder("weights");
  for (const Bytes bytes : parameters) {
    OpSpec spec;
    spec.explicit_times["*"] = 1;
    spec.parameter_bytes = bytes;
    const OpId op = builder.add_op(std::move(spec));
    if (op > 0) builder.add_consumer(builder.add_tensor(op - 1, tensor, 1.0), op);
  }
  return std::move(builder).build();
}

TEST(MemoryGreedy, FillsDevicesInOrder) {
  // 12 bytes less 2 x 2 for the tensors of one op leave room for two ops of 4.
  const Problem world(chain_of_weights({4, 4, 4, 4, 4}, 2), test::machine_of({"a", "a", "a", "a"}, 12));
  const Placement placement = test::run(memory_greedy, world, {}).placement;
  EXPECT_EQ(placement.device_of_op, (std::vector<DeviceId>{0, 0, 1, 1, 2}));
  EXPECT_EQ(placement.cause_of_op, std::vector<Cause>(5, Cause::fill_order));
}

TEST(MemoryGreedy, SharesParametersEquallyWithoutCapacities) {
  // 12 bytes on two devices: 6 each.
  const Problem world(chain_of_weights({2, 4, 3, 3}, 2), test::machine_of({"a", "a"}));
  EXPECT_EQ(test::run(memory_greedy, world, {}).placement.device_of_op, (std::vector<DeviceId>{0, 0, 1, 1}));
}

TEST(MemoryGreedy, SharesWorkEquallyWithoutParameters) {
  const Problem world(test::graph_of({3, 1, 2, 2}, {}), test::machine_of({"a", "a"}));
  EXPECT_EQ(test::run(memory_greedy, world, {}).placement.device_of_op, (std::vector<DeviceId>{0, 0, 1, 1}));
}

TEST(MemoryGreedy, LeavesPinnedOpsWhereTheyAre) {
  const Problem world(test::graph_of({1, 1, 1, 1}, {}), test::machine_of({"a", "a"}), {}, {{0, 1}});
  // 0 counts on d1; 1 and 2 fill d0 to its share of 2; 3 goes to d1.
  EXPECT_EQ(test::run(memory_greedy, world, {}).placement.device_of_op, (std::vector<DeviceId>{1, 0, 0, 1}));
}

}  // namespace
}  // namespace doppler
