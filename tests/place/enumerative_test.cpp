#include "doppler/place/partition/enumerative.h"

#include <gtest/gtest.h>

#include "tests/support/problems.h"

namespace doppler {
namespace {

TEST(Enumerative, SpreadsShardsAndLeavesTheirConsumersWithThem) {
  // Four shards, two rounds of two: d0 d1 d0 d1. Each consumer reads the neighbour's output, so staying with
  // the input costs nothing and moving 10.
  const Problem world(test::graph_of({1, 1, 1, 1, 2, 2, 2, 2}, {{1, 4, 10}, {0, 5, 10}, {3, 6, 10}, {2, 7, 10}}),
                      test::machine_of({"a", "a"}));
  EXPECT_EQ(test::run(enumerative, world, {}).placement.device_of_op, (std::vector<DeviceId>{0, 1, 0, 1, 1, 0, 1, 0}));
}

TEST(Enumerative, FindsTheBestPermutationNotTheGreedyOne) {
  // Shards 2 and 3 of the second meta-op. 2 prefers d0 by a little (moving from it costs 1), 3 by much (10);
  // both are made of inputs on d0, so 2 must give way.
  const Problem world(test::graph_of({1, 1, 2, 2}, {{0, 2, 1}, {0, 3, 10}}), test::machine_of({"a", "a"}));
  const Placement placement = test::run(enumerative, world, {}).placement;
  EXPECT_EQ(placement.device_of_op, (std::vector<DeviceId>{0, 1, 1, 0}));
}

TEST(Enumerative, CountsATensorThatIsAlreadyThereAsFree) {
  // One tensor of op 0 (cost 4 to move) is read by 1 and 2, which form a round: one stays on d0, the other
  // moves it to d1. Op 3 reads it too, with op 4's tensor (cost 1) from d1: free on d1, 1 on d0.
  GraphBuilder builder("shared tensor");
  for (const Seconds time : {1.0, 2.0, 2.0, 3.0, 1.0}) {
    OpSpec op;
    op.explicit_times["*"] = time;
    builder.add_op(std::move(op));
  }
  const TensorId shared = builder.add_tensor(0, 0, 4.0), other = builder.add_tensor(4, 0, 1.0);
  for (const OpId reader : {1, 2, 3}) builder.add_consumer(shared, reader);
  builder.add_consumer(other, 3);
  const Problem world(std::move(builder).build(), test::machine_of({"a", "a"}));
  const Placement placement = test::run(enumerative, world, {}).placement;
  EXPECT_EQ(placement.device_of_op[4], 1u);
  EXPECT_NE(placement.device_of_op[1], placement.device_of_op[2]);
  EXPECT_EQ(placement.device_of_op[3], 1u);
}

TEST(Enumerative, KeepsGroupsAndPins) {
  GraphBuilder builder("groups");
  for (const char* group : {"g", "g", "", ""}) {
    OpSpec op;
    op.explicit_times["*"] = 1;
    op.group = group;
    builder.add_op(std::move(op));
  }
  const Problem world(std::move(builder).build(), test::machine_of({"a", "a", "a"}), {}, {{1, 2}, {3, 2}});
  const Placement placement = test::run(enumerative, world, {}).placement;
  EXPECT_EQ(placement.device_of_op[0], 2u);
  EXPECT_EQ(placement.device_of_op[1], 2u);
  EXPECT_EQ(placement.device_of_op[3], 2u);
  EXPECT_NE(placement.device_of_op[2], 2u);
}

}  // namespace
}  // namespace doppler
