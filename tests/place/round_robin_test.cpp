#include "doppler/place/list/round_robin.h"

#include <gtest/gtest.h>

#include "tests/support/problems.h"

namespace doppler {
namespace {

TEST(RoundRobin, DealsOpsInTopologicalOrder) {
  // 4 comes before 0, because 0 reads it: the order is 1 2 3 4 0.
  const Problem world(test::graph_of({1, 1, 1, 1, 1}, {{4, 0}}), test::machine_of({"a", "a", "a"}));
  EXPECT_EQ(test::run(round_robin, world, {}).placement.device_of_op, (std::vector<DeviceId>{1, 0, 1, 2, 0}));
}

TEST(RoundRobin, PassesOverDevicesThatAreNotAllowedOrFull) {
  GraphBuilder builder("weights");
  for (const Bytes bytes : {10, 10, 1, 2}) {
    OpSpec op;
    op.explicit_times["*"] = 1;
    op.parameter_bytes = bytes;
    builder.add_op(std::move(op));
  }
  // 0 is pinned to d1; 1 goes to d2, 2 to d0. 3 would need 12 bytes on d1 and on d2, and 3 on d0.
  const Problem world(std::move(builder).build(), test::machine_of({"a", "a", "a"}, 11), {}, {{0, 1}});
  const Placement placement = test::run(round_robin, world, {}).placement;
  EXPECT_EQ(placement.device_of_op, (std::vector<DeviceId>{1, 2, 0, 0}));
  EXPECT_EQ(placement.cause_of_op, (std::vector<Cause>{Cause::pinned, Cause::chosen, Cause::chosen, Cause::memory}));
}

}  // namespace
}  // namespace doppler
