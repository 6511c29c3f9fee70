#include "doppler/place/list/etf.h"

#include <gtest/gtest.h>

#include "doppler/base/rng.h"
#include "doppler/graph/levels.h"
#include "tests/support/problems.h"

namespace doppler {
namespace {

TEST(Etf, BreaksTiesByStaticLevel) {
  // All can start at 0. Levels 2, 3, 3: op 1 on d0, op 2 on d1, op 0 at 3 on d0.
  const Problem world(test::graph_of({2, 3, 3}, {}), test::machine_of({"a", "a"}));
  const Placement placement = test::run(etf, world, {}).placement;
  EXPECT_EQ(placement.device_of_op, (std::vector<DeviceId>{0, 0, 1}));
  EXPECT_EQ(placement.priority, (std::vector<std::uint32_t>{2, 0, 1}));
}

TEST(Etf, StartsTheEarliestPairFirstHoweverUrgentOthersAre) {
  // 0 (1) -> 1 (9) over 4. d0: 0 at 0. Then 2 (1), level 1, can start at 0 on d1, 1 only at 1.
  // 2 goes first although the level of 1 is 9; then 1 at 1 on d0.
  const Problem world(test::graph_of({1, 9, 1}, {{0, 1, 4}}), test::machine_of({"a", "a"}));
  const Placement placement = test::run(etf, world, {}).placement;
  EXPECT_EQ(placement.device_of_op, (std::vector<DeviceId>{0, 0, 1}));
  EXPECT_EQ(placement.priority, (std::vector<std::uint32_t>{0, 2, 1}));
}

// The definition, with a scan over all pairs at each step. One slot per device, no groups, no memory.
Placement etf_by_scanning(const Problem& world) {
  const Graph& graph = world.graph();
  const auto level = levels(graph, world.costs().mean_times(), {}).bottom;
  std::vector<Seconds> end(graph.op_count(), -1), available(world.machine().device_count(), 0);
  Placement placement;
  placement.device_of_op.resize(graph.op_count());
  std::vector<OpId> order;
  while (order.size() < graph.op_count()) {
    auto best = std::tuple(Costs::kNever, 0.0, OpId{0}, DeviceId{0});
    for (OpId op = 0; op < graph.op_count(); ++op) {
      bool ready = end[op] < 0;
      for (const TensorId tensor : graph.inputs(op)) ready = ready && end[graph.producer(tensor)] >= 0;
      if (!ready) continue;
      for (const DeviceId device : world.devices(op)) {
        Seconds start = available[device];
        for (const TensorId tensor : graph.inputs(op)) {
          const OpId producer = graph.producer(tensor);
          start = std::max(
              start, end[producer] + world.costs().transfer_time(tensor, placement.device_of_op[producer], device));
        }
        best = std::min(best, std::tuple(start, -level[op], op, device));
      }
    }
    const auto [start, minus_level, op, device] = best;
    order.push_back(op);
    placement.device_of_op[op] = device;
    available[device] = end[op] = start + world.costs().op_time(op, device);
  }
  placement.priority = ranks_from_order(order);
  return placement;
}

TEST(Etf, AgreesWithAScanOverAllPairs) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    GraphBuilder builder("random");
    for (OpId op = 0; op < 60; ++op) {
      OpSpec spec;
      spec.explicit_times = {{"a", rng.below(5)}, {"b", rng.below(5)}};
      if (rng.below(8) == 0) spec.explicit_times["b"] = Costs::kNever;
      builder.add_op(std::move(spec));
      if (op > 0)
        for (OpId reads = rng.below(3); reads > 0; --reads)
          builder.add_consumer(builder.add_tensor(rng.below(op), 0, rng.below(4)), op);
    }
    // The devices of one type can be exchanged.
    const Problem world(std::move(builder).build(), test::machine_of({"a", "b", "b", "a", "b", "b", "a", "b"}), {},
                        {{5, 0}});
    const Placement expected = etf_by_scanning(world), found = test::run(etf, world, {}).placement;
    EXPECT_EQ(found.device_of_op, expected.device_of_op) << "seed " << seed;
    EXPECT_EQ(found.priority, expected.priority) << "seed " << seed;
  }
}

TEST(Etf, PlacesWhatFitsNowhereAndLetsTheRepairFindRoom) {
  // d0 and d1 hold 20 bytes each. Two ops of 8 start first, one on each device; the op of 14 then fits
  // nowhere, until one of 8 has moved to the other device.
  GraphBuilder builder("weights");
  for (const auto& [time, bytes] : {std::pair(3.0, Bytes{8}), {3.0, Bytes{8}}, {1.0, Bytes{14}}}) {
    OpSpec op;
    op.explicit_times["*"] = time;
    op.parameter_bytes = bytes;
    builder.add_op(std::move(op));
  }
  const Problem world(std::move(builder).build(), test::machine_of({"a", "a"}, 20));
  const Placement placement = test::run(etf, world, {}).placement;
  EXPECT_TRUE(test::simulate(world, placement).feasible());
  EXPECT_EQ(placement.cause_of_op[2], Cause::memory);
}

}  // namespace
}  // namespace doppler
