#include "doppler/sim/simulator.h"

#include <cmath>
#include <tuple>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/sim/memory.h"
#include "tests/sim/allocation_count.h"
#include "tests/support/problems.h"

namespace doppler {
namespace {

using test::Edge;
using test::graph_of;
using test::machine_of;
using test::rules_of;

Placement on(std::vector<DeviceId> devices, std::vector<std::uint32_t> priority = {}) {
  Placement placement;
  placement.device_of_op = std::move(devices);
  placement.priority = std::move(priority);
  return placement;
}

const Timeline::Execution& run_of(const Timeline& timeline, OpId op) {
  for (const auto& run : timeline.executions)
    if (run.op == op) return run;
  throw InternalError("op did not run");
}

TEST(ASimulator, RunsOpsOfOneDeviceOneAfterAnother) {
  // 3 + 4 + 5 on one device, whatever the order.
  const Problem world(graph_of({3, 4, 5}, {}), uniform_machine(2));
  EXPECT_EQ(test::simulate(world, on({0, 0, 0})).makespan, 12);
  // 3 and 5 on the first, 4 beside them on the second.
  EXPECT_EQ(test::simulate(world, on({0, 1, 0})).makespan, 8);
}

TEST(ASimulator, OverlapsCopyWithCompute) {
  // Op 0 (1 s) sends to op 2 (1 s) on device 1 for 4 s; meanwhile op 1 keeps device 1 busy for 5 s.
  // 2 arrives at 1 + 4 = 5, device 1 is free at 5: makespan 6. Without overlap it would be 11.
  const Problem world(graph_of({1, 5, 1}, {{0, 2, 4}}), uniform_machine(2));
  EXPECT_EQ(test::simulate(world, on({0, 1, 1})).makespan, 6);
}

TEST(ASimulator, ExplainsTheMakespanByAChainOfOps) {
  // Device 0: op 0 until 1, op 4 until 3. Device 1: op 1 until 5; op 2, which has waited for its device since 0 arrived
  // at 1 + 3 = 4, until 6; op 3, whose input 2 is here, until 8. So 3 waited for 2, and 2 for 1.
  const Problem world(graph_of({1, 5, 1, 2, 2}, {{0, 2, 3}, {2, 3, 1}, {0, 4, 1}}), uniform_machine(2));
  Simulator simulator(world);
  std::vector<OpId> chain;
  EXPECT_EQ(simulator.makespan(on({0, 1, 1, 1, 0})), 8);
  simulator.critical_chain(on({0, 1, 1, 1, 0}).device_of_op, {}, chain);
  EXPECT_EQ(chain, (std::vector<OpId>{3, 2, 1}));
  // Device 0: op 0 until 1, op 2 until 2, op 3 until 4. Device 1: op 1 until 5, then op 4, there since 1 + 1, until 7.
  simulator.critical_chain(on({0, 1, 0, 0, 1}).device_of_op, {}, chain);
  EXPECT_EQ(chain, (std::vector<OpId>{4, 1}));
  // Device 1: op 2 when 0 has arrived, at 4, until 5, op 3 until 7. Device 0: op 0 until 1, op 4 until 3. Device 2: op
  // 1.
  const Problem three(world.graph(), uniform_machine(3));
  Simulator(three).critical_chain(on({0, 2, 1, 1, 0}).device_of_op, {}, chain);
  EXPECT_EQ(chain, (std::vector<OpId>{3, 2, 0}));
}

TEST(ASimulator, MovesATensorOncePerDestination) {
  // One tensor of op 0 is read by ops 1 and 2, both on device 1: one transfer of 10 s, then 1 + 1 s of work.
  GraphBuilder builder("test");
  for (const Seconds time : {2.0, 1.0, 1.0}) {
    OpSpec op;
    op.explicit_times["*"] = time;
    builder.add_op(op);
  }
  const TensorId tensor = builder.add_tensor(0, 0, 10.0);
  builder.add_consumer(tensor, 1);
  builder.add_consumer(tensor, 2);
  Rules rules;
  rules.links = Links::channels;
  const Problem world(std::move(builder).build(), uniform_machine(2), rules);
  const Timeline timeline = test::simulate(world, on({0, 1, 1}));
  EXPECT_EQ(timeline.transfers.size(), 1u);
  EXPECT_EQ(timeline.makespan, 2 + 10 + 1 + 1);
}

TEST(ASimulator, ServesTheEarlierReadyOpFirstUnderFifo) {
  // Device 1 is busy with op 4 until 10. Op 2 is ready there at 1 + 5 = 6, op 3 at 2 + 3 = 5: op 3 goes
  // first.
  const Problem world(graph_of({1, 2, 7, 7, 10}, {{0, 2, 5}, {1, 3, 3}}), uniform_machine(3));
  const Timeline timeline = test::simulate(world, on({0, 2, 1, 1, 1}));
  EXPECT_EQ(run_of(timeline, 3).start, 10);
  EXPECT_EQ(run_of(timeline, 2).start, 17);
}

TEST(ASimulator, ServesTheMoreUrgentReadyOpFirstUnderPriority) {
  // As above, but op 2 has the smaller rank.
  const Problem world(graph_of({1, 2, 7, 7, 10}, {{0, 2, 5}, {1, 3, 3}}), uniform_machine(3),
                      rules_of(Discipline::priority));
  const Timeline timeline = test::simulate(world, on({0, 2, 1, 1, 1}, {0, 1, 2, 3, 4}));
  EXPECT_EQ(run_of(timeline, 2).start, 10);
  EXPECT_EQ(run_of(timeline, 3).start, 17);
}

TEST(ASimulator, WaitsForTheNextOpOnlyUnderOrdered) {
  // Device 1 runs op 1 (4 s) and op 2 (1 s, ready at 2, then op 3 of 10 s on device 0 needs it after 1 s).
  // Work-conserving: op 1 at 0-4, op 2 at 4-5, arrives at 6, op 3 ends at 16.
  // Ordered with op 2 before op 1: op 2 at 2-3, arrives at 4, op 3 ends at 14; op 1 at 3-7.
  const Graph graph = graph_of({1, 4, 1, 10}, {{0, 2, 1}, {2, 3, 1}});
  const std::vector<DeviceId> devices = {0, 1, 1, 0};
  const std::vector<std::uint32_t> urgent_first = {0, 3, 1, 2};
  const Problem priority(graph, uniform_machine(2), rules_of(Discipline::priority));
  EXPECT_EQ(test::simulate(priority, on(devices, urgent_first)).makespan, 16);
  const Problem ordered(graph, uniform_machine(2), rules_of(Discipline::ordered));
  EXPECT_EQ(test::simulate(ordered, on(devices, urgent_first)).makespan, 14);
}

TEST(ASimulator, TakesAnyPermutationAsAnOrder) {
  // The order asks for consumers before producers; each waits for its producer, nothing deadlocks: 1 + 2 + 3.
  for (const Links links : {Links::free, Links::channels, Links::receiver}) {
    Rules rules = rules_of(Discipline::ordered);
    rules.links = links;
    const Problem world(graph_of({1, 2, 3}, {{0, 1, 0}, {1, 2, 0}}), uniform_machine(2), rules);
    EXPECT_EQ(test::simulate(world, on({0, 0, 0}, {2, 1, 0})).makespan, 6);
  }
}

Rules receiver_rules() {
  Rules rules;
  rules.links = Links::receiver;
  return rules;
}

// For a receiver on device 1: two results of 4 s from ops 0 and 1 (1 s each) to ops 2 and 3, and ops 4 (3 s) and 5 (10
// s).
Graph work_for_a_receiver() { return graph_of({1, 1, 1, 1, 3, 10}, {{0, 2, 4}, {1, 3, 4}}); }

TEST(ASimulator, LetsTheReceiverCopyBetweenTwoOfItsOps) {
  // Ops 0 and 1 (1 s each) on device 0 send tensors of 4 s to ops 2 and 3 (1 s) on device 1, which runs op 4 until 3
  // and has op 5 (10 s) ready all the time. The copies are asked for at 1 and 2, begin when op 4 ends and go before the
  // ready op: 3-7 and 7-11. Then by ready time: op 5 (ready at 0) 11-21, op 2 (at 7) 21-22, op 3 (at 11) 22-23.
  const Problem world(work_for_a_receiver(), uniform_machine(2), receiver_rules());
  const Timeline timeline = test::simulate(world, on({0, 0, 1, 1, 1, 1}));
  ASSERT_EQ(timeline.transfers.size(), 2u);
  EXPECT_EQ(timeline.transfers[0].queued, 1);
  EXPECT_EQ(timeline.transfers[0].start, 3);
  EXPECT_EQ(timeline.transfers[1].queued, 2);
  EXPECT_EQ(timeline.transfers[1].start, 7);
  EXPECT_EQ(run_of(timeline, 5).start, 11);
  EXPECT_EQ(run_of(timeline, 2).ready, 7);
  EXPECT_EQ(run_of(timeline, 3).start, 22);
  EXPECT_EQ(timeline.makespan, 23);
}

TEST(ASimulator, FollowsACriticalChainThroughACopyInTheWay) {
  // Ops 0 (device 0) and 3 (device 1) end at 1. Device 1 copies op 0's result, 1-5, before op 2, which is ready at 1
  // and runs 5-6; op 1 needs the result, is ready at 5 and runs 6-7. The chain: 1 after 2, 2 after the copy of 0's
  // result.
  const Problem world(graph_of({1, 1, 1, 1}, {{0, 1, 4}, {3, 2, 0}}), uniform_machine(2), receiver_rules());
  const Placement placement = on({0, 1, 1, 1});
  ASSERT_EQ(run_of(test::simulate(world, placement), 2).start, 5);
  std::vector<OpId> chain;
  Simulator(world).critical_chain(placement.device_of_op, {}, chain);
  EXPECT_EQ(chain, (std::vector<OpId>{1, 2, 0}));
}

TEST(ASimulator, CopiesInOneSlotWhileAnotherComputes) {
  // As above with two slots on each device: ops 4 and 5 take those of device 1 at 0; the copies are made in the slot
  // that op 4 leaves, 3-7 and 7-11, then ops 2 and 3 there: op 2 (ready at 7) 11-12; op 5 has left the other at 10, so
  // op 2 begins there at 10 and op 3 at 11.
  Device two_slots = uniform_machine(1).device(0);
  two_slots.slots = 2;
  Device other = two_slots;
  other.name = "other";
  const Problem world(work_for_a_receiver(), Machine("m", {two_slots, other}, std::vector<Link>(4)), receiver_rules());
  const Timeline timeline = test::simulate(world, on({0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(run_of(timeline, 2).start, 10);
  EXPECT_EQ(run_of(timeline, 3).start, 11);
  EXPECT_EQ(timeline.makespan, 12);
}

TEST(ASimulator, CopiesOneAfterTheOtherBetweenSuperstepsWhereReceiversDo) {
  // Level 0 ends at 1; device 1 copies 1-5 from device 0 and 5-9 from device 2; level 1 runs 9-10 and 10-11.
  Rules rules = receiver_rules();
  rules.bulk_synchronous = true;
  const Problem world(graph_of({1, 1, 1, 1}, {{0, 2, 4}, {1, 3, 4}}), uniform_machine(3), rules);
  EXPECT_EQ(test::simulate(world, on({0, 2, 1, 1})).makespan, 11);
}

// Two devices of one memory; the news of a tensor takes half a second.
Problem in_one_memory(Graph graph) {
  const Machine two = uniform_machine(2);
  return {
      std::move(graph),
      Machine("one memory", {two.device(0), two.device(1)}, std::vector<Link>(4, Link{.latency = 0.5}), Links::shared),
      {.links = Links::shared}};
}

TEST(ASimulator, HandsOverInOneMemoryForTheLatencyAlone) {
  // Ops 0 and 1 end at 1 and 2 on device 0; their tensors would take 4 s each to move. The news is there at 1.5 and 2.5,
  // and neither waits for the other: op 2 runs 1.5-2.5 on device 1, op 3 2.5-3.5.
  const Problem world = in_one_memory(graph_of({1, 1, 1, 1}, {{0, 2, 4}, {1, 3, 4}}));
  const Timeline timeline = test::simulate(world, on({0, 0, 1, 1}));
  EXPECT_EQ(timeline.transfers[0].end, 1.5);
  EXPECT_EQ(run_of(timeline, 2).start, 1.5);
  EXPECT_EQ(timeline.makespan, 3.5);
}

TEST(ASimulator, KeepsWhatIsHandedOverWhereItWasMade) {
  // Op 0 writes 10 B on device 0 and op 1 on device 1 reads them there: device 1 holds only the 20 B that op 1 writes.
  // While op 1 runs, 1.5-2.5, op 2 writes 30 B on device 0, 1-2, which then holds 40.
  GraphBuilder builder("test");
  for (int op = 0; op < 3; ++op) builder.add_op({.explicit_times = {{"*", 1.0}}});
  builder.add_consumer(builder.add_tensor(0, 10, 4.0), 1);
  builder.add_tensor(1, 20, 1.0);
  builder.add_tensor(2, 30, 1.0);
  const Timeline timeline = test::simulate(in_one_memory(std::move(builder).build()), on({0, 1, 0}));
  EXPECT_EQ(timeline.peak_memory, (std::vector<Bytes>{40, 20}));
}

TEST(ASimulator, QueuesTransfersOnAChannel) {
  // Two tensors of 4 s from device 0 to device 1, produced at 1 and 2. Free links: the second arrives at 6,
  // makespan 7. One channel: it starts when the first is through, at 5, and arrives at 9: makespan 10.
  const Graph graph = graph_of({1, 1, 1, 1}, {{0, 2, 4}, {1, 3, 4}});
  const Problem free(graph, uniform_machine(2));
  EXPECT_EQ(test::simulate(free, on({0, 0, 1, 1})).makespan, 7);
  Rules rules;
  rules.links = Links::channels;
  const Problem channels(graph, uniform_machine(2), rules);
  const Timeline timeline = test::simulate(channels, on({0, 0, 1, 1}));
  EXPECT_EQ(timeline.makespan, 10);
  EXPECT_EQ(timeline.transfers[1].queued, 2);
  EXPECT_EQ(timeline.transfers[1].start, 5);
}

TEST(ASimulator, ServesByIdWhatBecomesReadyLaterInTheSameInstant) {
  // Device 0: z takes no time and makes b (10 s) ready at 0, at the same instant as c (3 s). b has the smaller id, so
  // it goes first, its tensor arrives on device 1 at 10 + 5, and d ends at 16. If c went first, it would be 19.
  const Graph graph = graph_of({0, 10, 3, 1}, {{0, 1}, {1, 3, 5}});
  for (const Links links : {Links::free, Links::channels, Links::receiver}) {
    Rules rules;
    rules.links = links;
    const Problem problem(graph, uniform_machine(2), rules);
    EXPECT_EQ(test::simulate(problem, on({0, 0, 0, 1})).makespan, 16) << to_string(links);
  }
}

TEST(ASimulator, RunsAsManyOpsAtATimeAsThereAreSlots) {
  // Three ops of 4 s on two slots: 8 s.
  for (const Discipline discipline : {Discipline::fifo, Discipline::priority, Discipline::ordered}) {
    const Problem world(graph_of({4, 4, 4}, {}), machine_of({"gpu"}, 0, 2), rules_of(discipline));
    EXPECT_EQ(test::simulate(world, on({0, 0, 0})).makespan, 8);
  }
}

TEST(ASimulator, StopsAtABarrierAfterEachLevelInBulkSynchronousMode) {
  // Level 0: ops 0 (1 s, device 0) and 1 (5 s, device 1). Level 1: op 2 (1 s, device 0) reads op 0.
  // Work-conserving: op 2 runs at 1-2, makespan 5. Bulk-synchronous: op 2 waits for the barrier at 5,
  // makespan 6.
  const Graph graph = graph_of({1, 5, 1}, {{0, 2, 3}});
  Rules rules;
  EXPECT_EQ(Simulator(Problem(graph, uniform_machine(2), rules)).simulate(on({0, 1, 0})).makespan, 5);
  rules.bulk_synchronous = true;
  EXPECT_EQ(Simulator(Problem(graph, uniform_machine(2), rules)).simulate(on({0, 1, 0})).makespan, 6);
  // Across devices the transfer of 3 s starts at the barrier: 5 + 3 + 1.
  EXPECT_EQ(Simulator(Problem(graph, uniform_machine(2), rules)).simulate(on({0, 1, 1})).makespan, 9);
}

TEST(ASimulator, CountsParametersAndLiveTensors) {
  // Op 0 (100 B of parameters) writes 10 B, read by op 1 on device 1 (50 B of parameters), which writes 20 B
  // that nobody reads. Device 0: 100 + 10. Device 1: 50 + 10 (the copy, until op 1 ends) + 20 (from op 1's
  // start).
  GraphBuilder builder("test");
  for (const Bytes parameters : {100u, 50u}) {
    OpSpec op;
    op.explicit_times["*"] = 1;
    op.parameter_bytes = parameters;
    builder.add_op(op);
  }
  builder.add_consumer(builder.add_tensor(0, 10, 1.0), 1);
  builder.add_tensor(1, 20, 1.0);
  const Graph graph = std::move(builder).build();
  const Timeline timeline = Simulator(Problem(graph, uniform_machine(2))).simulate(on({0, 1}));
  EXPECT_EQ(timeline.peak_memory, (std::vector<Bytes>{110, 80}));
  EXPECT_TRUE(timeline.feasible());

  const Timeline tight = Simulator(Problem(graph, machine_of({"gpu", "gpu"}, 79))).simulate(on({0, 1}));
  ASSERT_FALSE(tight.feasible());
  EXPECT_EQ(tight.overflow->op, 0u);  // its parameters alone are too many
  EXPECT_EQ(tight.overflow->device, 0u);
  EXPECT_EQ(tight.overflow->needed, 100u);
}

// Three ops with a result of 10 B each.
Graph chain_of_three() {
  GraphBuilder builder("test");
  for (int i = 0; i < 3; ++i) {
    OpSpec op;
    op.explicit_times["*"] = 1;
    builder.add_op(op);
    builder.add_tensor(static_cast<OpId>(i), 10, 1.0);
  }
  builder.add_consumer(0, 1);
  builder.add_consumer(1, 2);
  return std::move(builder).build();
}

TEST(ASimulator, FreesMemoryAtTheLastUse) {
  // On one device: never more than two tensors at a time.
  const Timeline timeline = Simulator(Problem(chain_of_three(), uniform_machine(1))).simulate(on({0, 0, 0}));
  EXPECT_EQ(timeline.peak_memory[0], 20u);
}

TEST(ASimulator, NeedsNoTimelineWhereAllTensorsFitAtOnce) {
  // On one device all three tensors take 30 B, two at a time 20 B. On two devices {0, 1, 1} device 1 sees all three,
  // one of them as a copy.
  for (const auto& placement : {on({0, 0, 0}), on({0, 1, 1})}) {
    const DeviceId devices = placement.device_of_op[1] + 1;
    for (const auto& [memory, surely, fits] :
         {std::tuple{Bytes{30}, true, true}, {29, false, true}, {20, false, true}, {19, false, false}}) {
      const Problem world(chain_of_three(), machine_of(std::vector<std::string>(devices, "gpu"), memory));
      EXPECT_EQ(surely_fits(world, placement.device_of_op), surely) << memory;
      EXPECT_EQ(Simulator(world).fits_in_memory(placement), fits) << memory;
    }
  }
}

// A layered graph without structure, for properties.
Graph tangle(OpId ops, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<Seconds> times;
  std::vector<Edge> edges;
  for (OpId op = 0; op < ops; ++op) {
    times.push_back(rng.below(10));
    for (OpId from = op > 20 ? op - 20 : 0; from < op; ++from)
      if (rng.below(10) == 0) edges.push_back({from, op, static_cast<Seconds>(rng.below(20))});
  }
  return graph_of(times, edges);
}

Placement random_placement(const Graph& graph, DeviceId devices, Rng& rng) {
  Placement placement;
  std::vector<double> keys;
  for (OpId op = 0; op < graph.op_count(); ++op) {
    placement.device_of_op.push_back(rng.below(devices));
    keys.push_back(rng.uniform());
  }
  placement.priority = ranks_of(keys);
  return placement;
}

TEST(ASimulator, AllocatesNothingInTheFastPath) {
  const Graph graph = tangle(300, 1);
  const Machine machine = uniform_machine(4);
  Rng rng(2);
  const Placement placement = random_placement(graph, 4, rng);
  for (const Discipline discipline :
       {Discipline::fifo, Discipline::priority, Discipline::ordered, Discipline::random}) {
    for (const Links links : {Links::free, Links::channels}) {
      for (const Ties ties : {Ties::by_id, Ties::published}) {
        if (ties == Ties::published && (discipline != Discipline::fifo || links != Links::free)) continue;
        Rules rules = rules_of(discipline);
        rules.links = links;
        rules.ties = ties;
        const Problem problem(graph, machine, rules);
        Simulator simulator(problem);
        const std::size_t before = test::allocation_count();
        Seconds sum = 0;
        for (int i = 0; i < 10; ++i) sum += simulator.makespan(placement);
        EXPECT_EQ(test::allocation_count(), before) << to_string(discipline) << ", " << to_string(links);
        EXPECT_GT(sum, 0);
      }
    }
  }
}

// With so many channels that no transfer waits, the event engine must agree with the list engine; a tenth of the ops
// and a twentieth of the transfers take no time.
TEST(ASimulator, AgreesWithItselfAcrossEngines) {
  Rng rng(3);
  for (const Discipline discipline : {Discipline::fifo, Discipline::ordered}) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const Graph graph = tangle(120, seed);
      std::vector<Device> devices(3);
      for (std::size_t i = 0; i < 3; ++i) {
        devices[i].name = "d" + std::to_string(i);
        devices[i].type = "gpu";
        devices[i].slots = 1 + seed % 2;
      }
      Link link;
      link.channels = 1000;
      const Machine machine("many channels", devices, std::vector<Link>(9, link));
      const Placement placement = random_placement(graph, 3, rng);
      Rules rules = rules_of(discipline);
      const Problem free(graph, machine, rules);
      rules.links = Links::channels;
      const Problem channels(graph, machine, rules);
      EXPECT_EQ(Simulator(free).makespan(placement), Simulator(channels).makespan(placement))
          << to_string(discipline) << ", seed " << seed;
    }
  }
}

TEST(ASimulator, DrawsJitterBySeedWithMeanOne) {
  const Problem exact(graph_of({1, 1}, {{0, 1, 1}}), uniform_machine(2));
  const Placement apart = on({0, 1});
  ASSERT_EQ(test::simulate(exact, apart).makespan, 3);
  double sum = 0;
  constexpr int kSeeds = 4000;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const JitterDraw draw{0.2, seed};
    const Seconds makespan = Simulator(exact, draw).makespan(apart);
    EXPECT_EQ(makespan, Simulator(exact, draw).simulate(apart).makespan);
    sum += makespan;
  }
  // Each of the three terms has mean 1 and a standard deviation of 0.202; five standard errors of the mean.
  EXPECT_NEAR(sum / kSeeds, 3.0, 5 * 0.202 * std::sqrt(3.0 / kSeeds));
}

TEST(ASimulator, RefusesPublishedTiesWithOtherRules) {
  const Graph graph = graph_of({1}, {});
  const Machine machine = uniform_machine(1);
  Rules rules = rules_of(Discipline::priority);
  rules.ties = Ties::published;
  EXPECT_THROW(Problem(graph, machine, rules), InputError);
}

}  // namespace
}  // namespace doppler
