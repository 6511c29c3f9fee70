#include <gtest/gtest.h>

#include "doppler/base/rng.h"
#include "doppler/sim/memory.h"
#include "doppler/time_account.h"
#include "doppler/why.h"
#include "tests/support/problems.h"

namespace doppler::test {
namespace {

// a takes 2 s on device 0, its result of 8 bytes travels for 1 s, b takes 3 s on device 1.
Problem chain_of_two() {
  Rules rules;
  rules.links = Links::channels;
  return Problem(graph_of({2, 3}, {{0, 1, 1, 8}}), machine_of({"fast", "slow"}, 100), rules);
}
const Placement kApart{.device_of_op = {0, 1}, .cause_of_op = {Cause::pinned, Cause::search}};

TEST(ASchedule, HasEveryOpTransferGapAndStepOfTheChain) {
  const Problem problem = chain_of_two();
  const Timeline timeline = simulate(problem, kApart);
  const Schedule schedule = schedule_of(problem, kApart, timeline);
  // 0 … 2 a, 2 … 3 its result, 3 … 6 b: a tick is 6e-8 s, so that 3 s are 5e7 ticks.
  EXPECT_EQ(schedule.makespan, 6);
  EXPECT_EQ(schedule.ops.start, (Schedule::Ticks{0, 50'000'000}));
  EXPECT_EQ(schedule.ops.takes, (Schedule::Ticks{33'333'333, 50'000'000}));
  EXPECT_EQ(schedule.transfers.later, (Schedule::Ticks{33'333'333}));
  EXPECT_EQ(schedule.transfers.takes, (Schedule::Ticks{16'666'667}));
  EXPECT_EQ(schedule.ops.device, (Schedule::Column{0, 1}));
  EXPECT_EQ(schedule.causes[schedule.ops.cause[1]], "search");
  EXPECT_EQ(schedule.ops.input_begin, (Schedule::Column{0, 0, 1}));
  EXPECT_EQ(schedule.ops.input, (Schedule::Column{0}));
  EXPECT_EQ(schedule.transfers.producer, (Schedule::Column{0}));
  EXPECT_EQ(schedule.transfers.bytes, (std::vector<Bytes>{8}));
  // Device 1 waits for data until 3; device 0 is done at 2.
  ASSERT_EQ(schedule.gaps.device, (Schedule::Column{1, 0}));
  EXPECT_EQ(schedule.waits[schedule.gaps.waits[0]], "data");
  EXPECT_EQ(schedule.gaps.end[0], 50'000'000U);
  EXPECT_EQ(schedule.waits[schedule.gaps.waits[1]], "done");
  EXPECT_EQ(schedule.chain.transfer, (Schedule::Column{0, 1, 0}));
  EXPECT_EQ(schedule.chain.id, (Schedule::Column{0, 0, 1}));
  // Two types of devices: what each op takes on both.
  EXPECT_EQ(schedule.types, (std::vector<std::string>{"fast", "slow"}));
  EXPECT_EQ(schedule.time_on[1], (Schedule::Ticks{33'333'333, 50'000'000}));
}

TEST(ASchedule, SaysWhatTheWholeWouldTakeWithAnOpElsewhere) {
  const Problem problem = chain_of_two();
  const Schedule schedule = schedule_of(problem, kApart, simulate(problem, kApart));
  // Either op with the other: 2 + 3 = 5 s of 6, without a transfer. Where they are: 6 of 6 s are 1e8 ticks.
  EXPECT_EQ(schedule.elsewhere.op, (Schedule::Column{0, 1}));
  EXPECT_EQ(schedule.elsewhere.makespan[0], (Schedule::Ticks{100'000'000, 83'333'333}));
  EXPECT_EQ(schedule.elsewhere.makespan[1], (Schedule::Ticks{83'333'333, 100'000'000}));
  EXPECT_TRUE(schedule_of(problem, kApart, simulate(problem, kApart), true).elsewhere.op.empty());  // measured
}

TEST(MemoryOverTime, RisesWithResultsAndFallsWithTheirLastUse) {
  const Problem problem = chain_of_two();
  const Timeline timeline = simulate(problem, kApart);
  // a's result is on device 0 from a's start until it has left (3), on device 1 from 2 until b has ended (6).
  std::vector<std::tuple<Seconds, DeviceId, Bytes>> found;
  for (const MemoryStep& step : memory_over_time(problem, timeline))
    found.emplace_back(step.time, step.device, step.used);
  EXPECT_EQ(found, (std::vector<std::tuple<Seconds, DeviceId, Bytes>>{
                       {0, 0, 0}, {0, 1, 0}, {0, 0, 8}, {2, 1, 8}, {3, 0, 0}, {6, 1, 0}}));
}

TEST(IdleGaps, AddUpToWhatTheTimeAccountSays) {
  Rng rng(3);
  for (int i = 0; i < 20; ++i) {
    std::vector<Edge> edges;
    for (OpId op = 1; op < 30; ++op) edges.push_back({rng.below(op), op, rng.uniform(0, 2), 1});
    std::vector<Seconds> times(30);
    for (Seconds& time : times) time = rng.uniform(0.1, 2);
    Rules rules;
    rules.links = Links::channels;
    const Problem problem(graph_of(times, edges), machine_of({"a", "a", "a"}), rules);
    Placement placement;
    for (OpId op = 0; op < 30; ++op) placement.device_of_op.push_back(rng.below(3));
    const Timeline timeline = simulate(problem, placement);
    const std::vector<DeviceTime> accounts = account_time(problem, timeline);
    std::vector<DeviceTime> sums(3);
    for (const IdleGap& gap : idle_gaps(problem, timeline)) {
      const Seconds size = gap.end - gap.start;
      switch (gap.waits) {
        case IdleGap::Waits::data:
          sums[gap.device].data += size;
          break;
        case IdleGap::Waits::channel:
          sums[gap.device].channel += size;
          break;
        case IdleGap::Waits::memory:
          sums[gap.device].memory += size;
          break;
        case IdleGap::Waits::nothing:
          sums[gap.device].done += size;
          break;
      }
    }
    for (DeviceId device = 0; device < 3; ++device) {
      EXPECT_NEAR(sums[device].data, accounts[device].data, 1e-9);
      EXPECT_NEAR(sums[device].channel, accounts[device].channel, 1e-9);
      EXPECT_NEAR(sums[device].done, accounts[device].done, 1e-9);
    }
  }
}

}  // namespace
}  // namespace doppler::test
