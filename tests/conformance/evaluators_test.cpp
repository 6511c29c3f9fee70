#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "doppler/base/rng.h"
#include "tests/conformance/cases.h"

namespace doppler {
namespace {

using test::all_cases;
using test::Case;

constexpr double kSumRounding = 1e-9;  // sums in another order
constexpr std::uint64_t kPlacements = 3;

// Random devices and a random priority: nothing that a method would think of.
Placement arbitrary_placement(const Problem& problem, std::uint64_t seed) {
  Rng rng(seed);
  Placement placement;
  placement.device_of_op.resize(problem.op_count());
  std::vector<double> urgency;
  for (OpId op = 0; op < problem.op_count(); ++op) {
    const auto devices = problem.devices(op);
    const OpId first = problem.unit(op).front();
    placement.device_of_op[op] =
        first < op ? placement.device_of_op[first] : devices[rng.below(static_cast<std::uint32_t>(devices.size()))];
    urgency.push_back(rng.uniform());
  }
  placement.priority = ranks_of(urgency);
  return placement;
}

// A timeline, indexed for the checks.
struct Story {
  Story(const Problem& world_, const Placement& placement_)
      : world(world_), placement(placement_), timeline(test::simulate(world, placement)) {
    for (const auto& run : timeline.executions) run_of_op[run.op] = &run;
    for (const auto& move : timeline.transfers) moves[{move.tensor, move.dst}].push_back(&move);
  }
  const Problem& world;
  Placement placement;
  Timeline timeline;
  std::map<OpId, const Timeline::Execution*> run_of_op;
  std::map<std::pair<TensorId, DeviceId>, std::vector<const Timeline::Transfer*>> moves;
};

void for_each_story(void (*check)(const Story&)) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(c.name);
    for (std::uint64_t seed = 0; seed < kPlacements; ++seed)
      check(Story(c.problem, arbitrary_placement(c.problem, seed)));
  }
}

TEST(EveryEvaluator, RunsEachOpOnceOnItsDevice) {
  for_each_story([](const Story& story) {
    ASSERT_EQ(story.timeline.executions.size(), story.world.graph().op_count());
    ASSERT_EQ(story.run_of_op.size(), story.world.graph().op_count());
    std::vector<Seconds> busy(story.world.machine().device_count(), 0);
    for (const auto& run : story.timeline.executions) {
      EXPECT_EQ(run.device, story.placement.device_of_op[run.op]);
      EXPECT_LT(run.slot, story.world.machine().device(run.device).slots);
      const Seconds time = story.world.costs().op_time(run.op, run.device);
      EXPECT_NEAR(run.end - run.start, time, kSumRounding);
      busy[run.device] += time;
    }
    for (DeviceId device = 0; device < busy.size(); ++device)
      EXPECT_NEAR(story.timeline.busy[device], busy[device], kSumRounding);
  });
}

TEST(EveryEvaluator, RespectsDependencies) {
  for_each_story([](const Story& story) {
    const Graph& graph = story.world.graph();
    for (OpId op = 0; op < graph.op_count(); ++op) {
      const auto& run = *story.run_of_op.at(op);
      Seconds arrived = 0;
      for (const TensorId tensor : graph.inputs(op)) {
        const auto& producer = *story.run_of_op.at(graph.producer(tensor));
        if (producer.device == run.device) {
          arrived = std::max(arrived, producer.end);
          continue;
        }
        const auto found = story.moves.find({tensor, run.device});
        ASSERT_NE(found, story.moves.end()) << "op " << op << " never got tensor " << tensor;
        const auto& move = *found->second.front();
        EXPECT_GE(move.start, producer.end);
        EXPECT_NEAR(move.end - move.start, story.world.costs().transfer_time(tensor, move.src, move.dst), kSumRounding);
        arrived = std::max(arrived, move.end);
      }
      EXPECT_LE(arrived, run.ready);
      EXPECT_LE(run.ready, run.start);
      if (!story.world.rules().bulk_synchronous) {
        EXPECT_EQ(arrived, run.ready);
      }
    }
  });
}

TEST(EveryEvaluator, MovesATensorOncePerDestinationAndOnlyWhereItIsRead) {
  for_each_story([](const Story& story) {
    for (const auto& [where, list] : story.moves) {
      const auto [tensor, dst] = where;
      EXPECT_EQ(list.size(), 1u);
      EXPECT_EQ(list.front()->src, story.placement.device_of_op[story.world.graph().producer(tensor)]);
      EXPECT_NE(list.front()->src, dst);
      const auto readers = story.world.graph().consumers(tensor);
      EXPECT_TRUE(std::any_of(readers.begin(), readers.end(),
                              [&, to = dst](OpId op) { return story.placement.device_of_op[op] == to; }));
    }
  });
}

// True if no two intervals [start, end) of positive length overlap.
bool disjoint(std::vector<std::pair<Seconds, Seconds>> intervals) {
  std::erase_if(intervals, [](const auto& interval) { return interval.first == interval.second; });
  std::sort(intervals.begin(), intervals.end());
  for (std::size_t i = 1; i < intervals.size(); ++i)
    if (intervals[i].first < intervals[i - 1].second) return false;
  return true;
}

TEST(EveryEvaluator, NeverComputesAndCopiesMoreAtATimeThanAReceiverHasSlots) {
  for_each_story([](const Story& story) {
    if (story.world.rules().links != Links::receiver) return;
    std::vector<std::map<Seconds, int>> changes(story.world.machine().device_count());  // of what is going on, by time
    const auto add = [&](DeviceId device, Seconds start, Seconds end) {
      ++changes[device][start];
      --changes[device][end];
    };
    for (const auto& run : story.timeline.executions) add(run.device, run.start, run.end);
    for (const auto& move : story.timeline.transfers) add(move.dst, move.start, move.end);
    for (DeviceId device = 0; device < changes.size(); ++device) {
      int running = 0;
      for (const auto& [time, change] : changes[device])
        EXPECT_LE(running += change, static_cast<int>(story.world.machine().device(device).slots)) << "at " << time;
    }
  });
}

TEST(EveryEvaluator, NeverRunsTwoOpsOnASlotOrTwoTransfersOnAChannel) {
  for_each_story([](const Story& story) {
    std::map<std::tuple<DeviceId, std::uint32_t>, std::vector<std::pair<Seconds, Seconds>>> slots;
    for (const auto& run : story.timeline.executions) slots[{run.device, run.slot}].emplace_back(run.start, run.end);
    for (const auto& [slot, intervals] : slots) EXPECT_TRUE(disjoint(intervals)) << "slot " << std::get<1>(slot);
    if (story.world.rules().links != Links::channels) return;
    std::map<std::tuple<DeviceId, DeviceId, std::uint32_t>, std::vector<std::pair<Seconds, Seconds>>> channels;
    for (const auto& move : story.timeline.transfers) {
      EXPECT_LT(move.channel, story.world.machine().link(move.src, move.dst).channels);
      channels[{move.src, move.dst, move.channel}].emplace_back(move.start, move.end);
    }
    for (const auto& [channel, intervals] : channels)
      EXPECT_TRUE(disjoint(intervals)) << "channel " << std::get<2>(channel);
  });
}

TEST(EveryEvaluator, KeepsNoSlotIdleWhileAnOpIsReady) {
  for_each_story([](const Story& story) {
    const Rules& rules = story.world.rules();
    if (rules.bulk_synchronous || rules.discipline == Discipline::ordered) return;  // not work-conserving
    for (const auto& waiting : story.timeline.executions) {
      // From ready to start every slot of the device is busy.
      Seconds busy = 0;
      const auto add = [&](Seconds start, Seconds end) {
        busy += std::max(0.0, std::min(end, waiting.start) - std::max(start, waiting.ready));
      };
      for (const auto& run : story.timeline.executions)
        if (run.device == waiting.device) add(run.start, run.end);
      for (const auto& move : story.timeline.transfers)
        if (rules.links == Links::receiver && move.dst == waiting.device) add(move.start, move.end);
      EXPECT_NEAR(busy, (waiting.start - waiting.ready) * story.world.machine().device(waiting.device).slots,
                  kSumRounding);
    }
  });
}

TEST(EveryEvaluator, HasOneMakespan) {
  for_each_story([](const Story& story) {
    Seconds last = 0;
    for (const auto& run : story.timeline.executions) last = std::max(last, run.end);
    EXPECT_EQ(story.timeline.makespan, last);
    Simulator simulator(story.world);
    EXPECT_EQ(simulator.makespan(story.placement), last);
    EXPECT_EQ(simulator.makespan(story.placement), last) << "a second run with the same simulator";
  });
}

TEST(EveryEvaluator, NeverBeatsTheLowerBound) {
  for (const Case& c : all_cases())
    for (std::uint64_t seed = 0; seed < kPlacements; ++seed)
      EXPECT_GE(test::simulate(c.problem, arbitrary_placement(c.problem, seed)).makespan,
                c.bound.value * (1 - kSumRounding))
          << c.name;
}

// No tensor is counted before it is there or after it is gone, whatever takes no time.
TEST(EveryEvaluator, CountsNoMoreMemoryThanThereIsData) {
  for_each_story([](const Story& story) {
    const Graph& graph = story.world.graph();
    Bytes total = 0;
    for (OpId op = 0; op < graph.op_count(); ++op) total += graph.parameter_bytes(op);
    for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor) total += graph.bytes(tensor);
    for (const Bytes peak : story.timeline.peak_memory) EXPECT_LE(peak, total);
  });
}

}  // namespace
}  // namespace doppler
