#include "doppler/time_account.h"

#include <gtest/gtest.h>

#include "doppler/sim/simulator.h"

namespace doppler {
namespace {

// a (4 s) and b (1 s) send a result of 3 s each to c (1 s) and d (1 s).
Graph two_messages() {
  GraphBuilder builder("test");
  for (const Seconds time : {4.0, 1.0, 1.0, 1.0}) builder.add_op({.explicit_times = {{"*", time}}});
  builder.add_consumer(builder.add_tensor(0, 0, 3.0), 2);
  builder.add_consumer(builder.add_tensor(1, 0, 3.0), 3);
  return std::move(builder).build();
}

TEST(ATimeAccount, NamesWhatEachDeviceWaitedFor) {
  // a and b on device 0, c and d on device 1, one channel: a ends at 4, its result arrives at 7, c runs 7-8; b ends at
  // 5, its result queues until 7 and arrives at 10, d runs 10-11.
  const Graph graph = two_messages();
  const Machine machine = uniform_machine(2);
  const Problem problem(graph, machine, {.links = Links::channels});
  const Timeline timeline = Simulator(problem).simulate({{0, 0, 1, 1}, {}, {}});
  ASSERT_EQ(timeline.makespan, 11);
  const std::vector<DeviceTime> time = account_time(problem, timeline);
  EXPECT_EQ(time[0].busy, 5);
  EXPECT_EQ(time[0].done, 6);
  EXPECT_EQ(time[0].data + time[0].channel + time[0].memory, 0);
  // Device 1: 7 s until c; then 8-10 until d, whose transfer had begun by then.
  EXPECT_EQ(time[1].data, 9);
  EXPECT_EQ(time[1].channel, 0);
  EXPECT_EQ(time[1].busy, 2);
  EXPECT_EQ(time[1].done, 0);
}

TEST(ATimeAccount, TakesWhatOthersHadFromWhatNothingElseExplains) {
  // As above, but d begins 1 s after it could, at 11, and runs until 13. Others had the core of device 1 for 1.5 s: the
  // second of waiting that looks like one for memory, and half a second of the work.
  const Graph graph = two_messages();
  const Problem problem(graph, uniform_machine(2), {.links = Links::channels});
  Timeline timeline = Simulator(problem).simulate({{0, 0, 1, 1}, {}, {}});
  timeline.executions.back().start = 11;
  timeline.executions.back().end = timeline.makespan = 13;
  timeline.others = {0, 1.5};
  const std::vector<DeviceTime> time = account_time(problem, timeline);
  EXPECT_EQ(time[0].others, 0);
  EXPECT_EQ(time[1].others, 1.5);
  EXPECT_EQ(time[1].memory, 0);
  EXPECT_EQ(time[1].busy, 2.5);
  EXPECT_EQ(time[1].busy + time[1].data + time[1].channel + time[1].memory + time[1].others + time[1].done, 13);
}

TEST(ATimeAccount, SeparatesQueueingFromTravelling) {
  // As above without c: device 1 waits for d alone; b's result queues from 5 to 7 and travels until 10.
  const Graph graph = two_messages();
  const Machine machine = uniform_machine(2);
  const Problem problem(graph, machine, {.discipline = Discipline::ordered, .links = Links::channels});
  // By rank d goes first on device 1, so that the whole wait is d's.
  const Timeline timeline = Simulator(problem).simulate({{0, 0, 1, 1}, {0, 1, 3, 2}, {}});
  ASSERT_EQ(timeline.makespan, 12);
  const std::vector<DeviceTime> time = account_time(problem, timeline);
  EXPECT_EQ(time[1].channel, 2);
  EXPECT_EQ(time[1].data, 8);
  EXPECT_EQ(time[1].busy, 2);
}

TEST(ATimeAccount, SeesADeviceCopyForItself) {
  // Device 1 waits until 4 for a's result, copies it 4-7 and b's, asked for at 5, 7-10; then c and d, 10-12.
  const Graph graph = two_messages();
  const Machine machine = uniform_machine(2);
  const Problem problem(graph, machine, {.links = Links::receiver});
  const Timeline timeline = Simulator(problem).simulate({{0, 0, 1, 1}, {}, {}});
  ASSERT_EQ(timeline.makespan, 12);
  const std::vector<DeviceTime> time = account_time(problem, timeline);
  EXPECT_EQ(time[1].data, 4);
  EXPECT_EQ(time[1].copying, 6);
  EXPECT_EQ(time[1].busy, 2);
  EXPECT_EQ(time[1].channel + time[1].memory + time[1].done, 0);
  EXPECT_EQ(time[0].copying, 0);
}

TEST(ATimeAccount, AddsUpToTheMakespanOnEveryDevice) {
  Timeline timeline;
  timeline.makespan = 10;
  // Ready at 1, began at 3: no space.
  timeline.executions = {{0, 0, 0, 1, 3, 6}};
  GraphBuilder builder("test");
  builder.add_op({.explicit_times = {{"*", 3}}});
  const Graph graph = std::move(builder).build();
  const Machine machine = uniform_machine(1);
  const DeviceTime time = account_time(Problem(graph, machine), timeline)[0];
  EXPECT_EQ(time.data, 1);
  EXPECT_EQ(time.memory, 2);
  EXPECT_EQ(time.busy, 3);
  EXPECT_EQ(time.done, 4);
}

}  // namespace
}  // namespace doppler
