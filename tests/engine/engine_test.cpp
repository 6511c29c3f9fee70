#include <algorithm>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "doppler/engine/emulated/emulated_executor.h"
#include "doppler/engine/threads/thread_devices.h"
#include "doppler/engine/threads/threads_executor.h"
#include "doppler/graph/levels.h"
#include "doppler/sim/simulator.h"
#include "tests/engine/support.h"

namespace doppler::test {
namespace {

TEST(AThreadsExecutor, RunsEveryOpOnceAndInOrderOfDependencies) {
  for (const Discipline discipline :
       {Discipline::fifo, Discipline::priority, Discipline::ordered, Discipline::random}) {
    Rng rng(3);
    const Problem world(random_graph(rng, 200), uniform_machine(3), {.discipline = discipline});
    const auto kernels = std::make_shared<CheckingKernels>(world);
    ThreadsExecutor executor(world, {.kernels = kernels});
    for (int round = 1; round <= 5; ++round) {
      const Placement placement = random_placement(rng, 200, 3);
      const Timeline timeline = executor.run(placement);
      expect_legal(world, placement, timeline);
      EXPECT_EQ(kernels->runs(), std::vector<int>(200, round));
    }
  }
}

TEST(AThreadsExecutor, LeavesCopiesToTheReceiversIfTheRulesSay) {
  constexpr Bytes kDirect = 4096;  // the producer copies so much itself
  for (const bool bulk_synchronous : {false, true}) {
    Rng rng(4);
    const Problem world(random_graph(rng, 200), uniform_machine(3),
                        {.links = Links::receiver, .bulk_synchronous = bulk_synchronous});
    const auto kernels = std::make_shared<CheckingKernels>(world);
    ThreadsExecutor executor(world, {.kernels = kernels});
    for (int round = 1; round <= 5; ++round) {
      const Placement placement = random_placement(rng, 200, 3);
      const Timeline timeline = executor.run(placement);
      expect_legal(world, placement, timeline);
      for (const Timeline::Transfer& copy : timeline.transfers)
        for (const Timeline::Execution& execution : timeline.executions) {
          const bool apart = execution.end <= copy.start || execution.start >= copy.end;
          EXPECT_TRUE(apart || world.graph().bytes(copy.tensor) <= kDirect || execution.device != copy.dst);
        }
    }
  }
}

// Notes where the tensors lie that ops write and read.
class NotingKernels : public CheckingKernels {
 public:
  explicit NotingKernels(const Problem& problem)
      : CheckingKernels(problem), shared_graph_(problem.shared_graph()), written_(problem.graph().tensor_count()) {}

  void run(OpId op, DeviceId device, const OpBuffers& buffers) override {
    std::size_t input = 0, output = 0;
    for (const TensorId tensor : shared_graph_->inputs(op))
      if (buffers.inputs[input++] != written_[tensor]) copied_ = true;
    for (const TensorId tensor : shared_graph_->outputs(op)) written_[tensor] = buffers.outputs[output++];
    CheckingKernels::run(op, device, buffers);
  }
  bool copied() const { return copied_; }

 private:
  std::shared_ptr<const Graph> shared_graph_;
  std::vector<const std::byte*> written_;
  std::atomic<bool> copied_{false};
};

TEST(AThreadsExecutor, HandsOverWithoutCopyingWhereDevicesHaveOneMemory) {
  for (const bool bulk_synchronous : {false, true}) {
    Rng rng(4);
    const Graph graph = random_graph(rng, 200);
    const Problem world(graph, uniform_machine(3), {.links = Links::shared, .bulk_synchronous = bulk_synchronous});
    const auto kernels = std::make_shared<NotingKernels>(world);
    ThreadsExecutor executor(world, {.kernels = kernels});
    for (int round = 1; round <= 5; ++round) {
      const Placement placement = random_placement(rng, 200, 3);
      expect_legal(world, placement, executor.run(placement));
      EXPECT_EQ(kernels->runs(), std::vector<int>(200, round));
    }
    EXPECT_FALSE(kernels->copied());
  }
}

TEST(AThreadsExecutor, TakesTheLowestRankUnderPriorityAndKeepsTheOrderUnderOrdered) {
  // Independent ops on one device, all ready at once.
  for (const Discipline discipline : {Discipline::priority, Discipline::ordered}) {
    const Problem world(graph_of(4, {}, 0), uniform_machine(1), {.discipline = discipline});
    const auto kernels = std::make_shared<CheckingKernels>(world);
    ThreadsExecutor executor(world, {.kernels = kernels});
    EXPECT_EQ(order_of(executor.run(on({0, 0, 0, 0}, {2, 0, 3, 1})), 0), (std::vector<OpId>{1, 3, 0, 2}));
  }
}

TEST(AThreadsExecutor, WaitsForTheNextOpUnderOrderedThoughAnotherIsReady) {
  // Op 2 is ready at once on device 1, but op 1, which comes first by rank, waits for op 0 on device 0.
  const Problem world(graph_of(3, {{0, 1}}, 8), uniform_machine(2), {.discipline = Discipline::ordered});
  const auto kernels = std::make_shared<CheckingKernels>(world);
  ThreadsExecutor executor(world, {.kernels = kernels});
  EXPECT_EQ(order_of(executor.run(on({0, 1, 1}, {0, 1, 2})), 1), (std::vector<OpId>{1, 2}));
}

TEST(AThreadsExecutor, RunsLevelByLevelIfBulkSynchronous) {
  Rng rng(5);
  const Problem world(random_graph(rng, 120), uniform_machine(3), {.bulk_synchronous = true});
  const auto kernels = std::make_shared<CheckingKernels>(world);
  ThreadsExecutor executor(world, {.kernels = kernels});
  const std::vector<std::uint32_t> depth = depths(world.graph());
  for (int round = 0; round < 10; ++round) {
    const Placement placement = random_placement(rng, 120, 3);
    const Timeline timeline = executor.run(placement);
    expect_legal(world, placement, timeline);
    std::vector<Seconds> level_end(121, 0), level_start(121, timeline.makespan);
    for (const Timeline::Execution& execution : timeline.executions) {
      level_end[depth[execution.op]] = std::max(level_end[depth[execution.op]], execution.end);
      level_start[depth[execution.op]] = std::min(level_start[depth[execution.op]], execution.start);
    }
    for (std::size_t level = 1; level < 121 && level_end[level] > 0; ++level)
      EXPECT_GE(level_start[level], level_end[level - 1]);
  }
}

// A formation of three inputs, of which the last comes late.
struct SlowThirdInput : CheckingKernels {
  explicit SlowThirdInput(const Problem& problem) : CheckingKernels(problem, {3}) {}
  void before(OpId op, DeviceId) override {
    if (op == 2)
      while (fold_calls < 2) std::this_thread::yield();
  }
};

TEST(AThreadsExecutor, FoldsTheInputsOfAFormationWhileItWaits) {
  const Problem world(graph_of(5, {{0, 3}, {1, 3}, {2, 3}, {3, 4}}, 8), uniform_machine(2));
  const auto kernels = std::make_shared<SlowThirdInput>(world);  // op 2 ends only after both other inputs were folded
  ThreadsExecutor executor(world, {.kernels = kernels});
  executor.time(on({0, 0, 1, 0, 0}));
  EXPECT_EQ(kernels->fold_calls, 3);
  EXPECT_EQ(kernels->runs(), std::vector<int>(5, 1));
}

TEST(AThreadsExecutor, FoldsNothingEarlyIfDeterministic) {
  const Problem world(graph_of(5, {{0, 3}, {1, 3}, {2, 3}, {3, 4}}, 8), uniform_machine(2));
  const auto kernels = std::make_shared<CheckingKernels>(world, std::set<OpId>{3});
  ThreadsExecutor executor(world, {.kernels = kernels, .deterministic = true});
  executor.time(on({0, 0, 1, 0, 0}));
  EXPECT_EQ(kernels->fold_calls, 0);
}

struct Throwing : CheckingKernels {
  using CheckingKernels::CheckingKernels;
  void before(OpId op, DeviceId) override {
    if (op == bad) throw std::runtime_error("division by zero");
  }
  OpId bad = 2;
};

TEST(AThreadsExecutor, ReportsAKernelThatThrowsWithItsOpAndRunsAgain) {
  const Problem world(graph_of(4, {{0, 1}, {1, 2}, {2, 3}}, 8192), uniform_machine(2));
  const auto kernels = std::make_shared<Throwing>(world);
  ThreadsExecutor executor(world, {.kernels = kernels});
  try {
    executor.time(on({0, 1, 0, 1}));
    FAIL() << "the kernel threw";
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "op 'op2' on device 'device0': division by zero");
  }
  kernels->bad = 99;
  EXPECT_GT(executor.time(on({0, 1, 0, 1})), 0);
}

struct OutOfRoom : CheckingKernels {
  using CheckingKernels::CheckingKernels;
  void before(OpId op, DeviceId) override {
    if (op == 2) throw std::bad_alloc();
  }
};

TEST(AThreadsExecutor, TakesALackOfMemoryForNoFaultOfTheOp) {
  const Problem world(graph_of(4, {{0, 1}, {1, 2}, {2, 3}}, 8192), uniform_machine(2));
  ThreadsExecutor executor(world, {.kernels = std::make_shared<OutOfRoom>(world)});
  EXPECT_THROW(executor.time(on({0, 1, 0, 1})), std::bad_alloc);
}

struct Stuck : CheckingKernels {
  using CheckingKernels::CheckingKernels;
  void before(OpId op, DeviceId) override {
    while (op == 1 && !released) std::this_thread::yield();
  }
  void cancel() override { released = true; }
  std::atomic<bool> released{false};
};

TEST(AThreadsExecutor, SaysWhoWaitsForWhatWhenADeviceStalls) {
  const Problem world(graph_of(3, {{0, 1}, {1, 2}}, 8), uniform_machine(2));
  const auto kernels = std::make_shared<Stuck>(world);
  ThreadsExecutor executor(world, {.kernels = kernels, .stall_after = 0.2});
  try {
    executor.time(on({0, 1, 0}));
    FAIL() << "op 1 never ends";
  } catch (const InternalError& error) {
    EXPECT_STREQ(
        error.what(),
        "run: no op has ended for 200 ms; device 'device0', 1 of 2 ops done, waits for 1 of 1 inputs of 'op2'; "
        "device 'device1', 0 of 1 ops done, is running 'op1'");
  }
}

// Ignores its cancellation until the test lets it go, and then reads and writes its buffers.
struct Deaf : CheckingKernels {
  using CheckingKernels::CheckingKernels;
  void before(OpId, DeviceId) override {
    while (!released) std::this_thread::yield();
  }
  std::atomic<bool> released{false};
};

TEST(AThreadsExecutor, GivesUpAKernelThatNeverReturnsAndRefusesToRunAgain) {
  std::weak_ptr<Deaf> kernels;
  {
    const Problem world(graph_of(2, {{0, 1}}, 8192), uniform_machine(1));
    const auto deaf = std::make_shared<Deaf>(world);
    kernels = deaf;
    ThreadsExecutor executor(world, {.kernels = deaf, .stall_after = 0.1});
    EXPECT_THROW(executor.time(on({0, 0})), InternalError);
    EXPECT_THROW(executor.time(on({0, 0})), InternalError);
  }
  // Nobody is left but the lost thread, which keeps everything that its kernel uses until it returns.
  ASSERT_FALSE(kernels.expired());
  if (const auto deaf = kernels.lock()) deaf->released = true;
  while (!kernels.expired()) std::this_thread::yield();
}

TEST(AnEmulatedExecutor, EndsWhenInterrupted) {
  const Problem world(graph_of(1, {}, 0, 3600), uniform_machine(1));  // an hour
  std::stop_source stop;
  EmulatedExecutor executor(world, {.time_scale = 1, .stop = stop.get_token()});
  std::thread user([&] { stop.request_stop(); });
  EXPECT_THROW(executor.time(on({0})), RunCancelled);
  user.join();
}

TEST(AThreadsExecutor, NamesTheOpAndTheDeviceWhoseMemoryDoesNotSuffice) {
  // Both results of 1000 bytes must be on device 0 when op 2 runs there.
  const Problem world(graph_of(3, {{0, 2}, {1, 2}}, 1000), uniform_machine(2, 1500));
  const auto kernels = std::make_shared<CheckingKernels>(world);
  ThreadsExecutor executor(world, {.kernels = kernels});
  try {
    executor.time(on({0, 0, 0}));
    FAIL() << "1500 bytes do not hold 2000";
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(),
                 "device 'device0': op 'op1' needs 1000 B, 1000 B of 1.465 KiB are in use and nothing will free any; "
                 "required a placement that fits in memory");
  }
}

TEST(AThreadsExecutor, LetsAnOpWaitUntilItsMemoryIsFree) {
  // Two chains 0-1 and 2-3 through one device that has memory for one tensor only: op 2 must wait for op 1.
  const Problem world(graph_of(4, {{0, 1}, {2, 3}}, 1000), uniform_machine(1, 1000));
  const auto kernels = std::make_shared<CheckingKernels>(world);
  ThreadsExecutor executor(world, {.kernels = kernels});
  const Timeline timeline = executor.run(on({0, 0, 0, 0}));
  EXPECT_EQ(order_of(timeline, 0), (std::vector<OpId>{0, 1, 2, 3}));
  EXPECT_EQ(timeline.peak_memory, std::vector<Bytes>{1000});
}

TEST(AThreadsExecutor, RefusesParametersThatDoNotFit) {
  GraphBuilder builder("test");
  builder.add_op({.parameter_bytes = 2000, .explicit_times = {{"*", 1}}});
  const Problem world(std::move(builder).build(), uniform_machine(1, 1000));
  const auto kernels = std::make_shared<CheckingKernels>(world);
  ThreadsExecutor executor(world, {.kernels = kernels});
  EXPECT_THROW(executor.time(on({0})), InfeasibleError);
}

TEST(AThreadsExecutor, RefusesDevicesOfSeveralSlots) {
  Device device;
  device.name = "a";
  device.type = "cpu";
  device.slots = 2;
  const Problem world(graph_of(1, {}, 0), Machine("two", {device}, {Link{}}));
  const auto kernels = std::make_shared<CheckingKernels>(world);
  EXPECT_THROW(ThreadsExecutor(world, {.kernels = kernels}), InputError);
  EXPECT_THROW(EmulatedExecutor{world}, InputError);
  EXPECT_EQ(EmulatedExecutor::obstacle(world),
            "machine 'two': device 'a' has 2 slots; required 1, an engine runs one op at a time");
}

TEST(AThreadsExecutor, RefusesAGraphWithoutAProgram) {
  const Problem world(graph_of(1, {}, 0), uniform_machine(1));
  EXPECT_EQ(ThreadsExecutor::obstacle(world),
            "graph 'test': found no program, only costs; required a graph that was lowered from a program, or emulated "
            "devices");
  EXPECT_THROW(ThreadsExecutor{world}, InputError);
  EXPECT_EQ(EmulatedExecutor::obstacle(world), std::nullopt);
}

TEST(ARuntime, ReturnsTheMakespanOfItsTimeline) {
  Rng rng(6);
  const Problem world(random_graph(rng, 200), uniform_machine(3));
  Runtime runtime(world, std::make_shared<ThreadDevices>(world, std::make_shared<CheckingKernels>(world)), {});
  const Seconds makespan = runtime.execute(random_placement(rng, 200, 3));
  EXPECT_EQ(makespan, runtime.timeline().makespan);
}

TEST(AnEmulatedExecutor, LetsTheModelledTimePass) {
  // Two chains of two ops of 10 ms, on a device each; the second chain crosses over with a copy of 5 ms:
  // 10 + 5 + 10 ms.
  const Problem world(graph_of(4, {{0, 1}, {2, 3}}, 8, 1e-2, 5e-3), uniform_machine(3));
  EmulatedExecutor executor(world, {.time_scale = 1});
  const Timeline timeline = executor.run(on({0, 0, 1, 2}));
  EXPECT_GE(timeline.makespan, 25e-3);
  ASSERT_EQ(timeline.transfers.size(), 1U);
  EXPECT_GE(timeline.transfers[0].end - timeline.transfers[0].start, 5e-3);
  for (const Timeline::Execution& execution : timeline.executions)
    EXPECT_GE(execution.end - execution.start, 10e-3 - 1e-6);
}

TEST(AnEmulatedExecutor, CanBeSlowedDownAndScaled) {
  const Problem world(graph_of(1, {}, 0, 1000), uniform_machine(1));  // 1000 units
  EmulatedExecutor executor(world, {.time_scale = 1e-5});             // of 10 µs
  EXPECT_GE(executor.time(on({0})), 1000 - 1);
  executor.slow_down(0, 3);
  EXPECT_GE(executor.time(on({0})), 3000 - 1);  // in units again
}

TEST(AnEmulatedExecutor, LetsALinkBeSlowedDown) {
  // Two ops of 1 unit and a transfer of 100 units between them, then of 500; a unit is 100 µs.
  GraphBuilder builder("test");
  for (int i = 0; i < 2; ++i) builder.add_op({.explicit_times = {{"*", 1.0}}});
  builder.add_consumer(builder.add_tensor(0, 8, 100.0), 1);
  const Problem world(std::move(builder).build(), uniform_machine(2));
  EmulatedExecutor executor(world, {.time_scale = 1e-4});
  EXPECT_GE(executor.time(on({0, 1})), 102 - 0.1);
  executor.changeable()->slow_down(0, 1, 5);
  EXPECT_GE(executor.time(on({0, 1})), 502 - 0.1);
  EXPECT_LT(executor.time(on({1, 0})), 502) << "the other direction is as it was";
}

TEST(AnEmulatedExecutor, SaysWhichDeviceDoesNotAnswerAndRunsAgainWithoutIt) {
  const Problem world(graph_of(3, {}, 0, 10), uniform_machine(3));
  EmulatedExecutor executor(world, {.time_scale = 1e-4});
  executor.changeable()->set_present(1, false);
  EXPECT_FALSE(executor.answers(1));
  EXPECT_TRUE(executor.answers(2));
  const auto begin = std::chrono::steady_clock::now();
  try {
    executor.run(on({0, 1, 2}));
    FAIL() << "device 1 is gone";
  } catch (const DeviceGone& gone) {
    EXPECT_EQ(gone.device, 1U);
    EXPECT_NE(std::string(gone.what()).find("has not answered for 100 ms"), std::string::npos) << gone.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << "it need not wait for a stall";
  EXPECT_GE(executor.time(on({0, 0, 2})), 20 - 0.1);
  executor.changeable()->set_present(1, true);
  EXPECT_GE(executor.time(on({0, 1, 2})), 10 - 0.1);
}

TEST(AnEmulatedExecutor, LetsReceiversCopyForThemselvesWhereTheyDo) {
  // As the simulator has it: device 1 runs op 4 for 3 ms, then copies two results of 4 ms, then runs op 5 of 10 ms,
  // which was ready all the time, then those that needed the copies.
  GraphBuilder builder("test");
  for (const Seconds time : {1.0, 1.0, 1.0, 1.0, 3.0, 10.0}) builder.add_op({.explicit_times = {{"*", time}}});
  builder.add_consumer(builder.add_tensor(0, 8, 4.0), 2);
  builder.add_consumer(builder.add_tensor(1, 8, 4.0), 3);
  const Problem world(std::move(builder).build(), uniform_machine(2), {.links = Links::receiver});
  constexpr double kMillisecond = 2e-3;  // two: wake-ups on a busy box must not change the order
  EmulatedExecutor executor(world, {.time_scale = kMillisecond});
  const Placement placement = on({0, 0, 1, 1, 1, 1});
  const Timeline timeline = executor.run(placement);
  EXPECT_GE(timeline.makespan, Simulator(world).makespan(placement) - 1e-6);
  ASSERT_EQ(timeline.transfers.size(), 2U);
  EXPECT_EQ(order_of(timeline, 1), (std::vector<OpId>{4, 5, 2, 3}));
  // Neither computes while it copies.
  for (const Timeline::Transfer& copy : timeline.transfers)
    for (const Timeline::Execution& execution : timeline.executions)
      EXPECT_TRUE(execution.device == 0 || execution.end <= copy.start || execution.start >= copy.end);
}

TEST(AnEmulatedExecutor, QueuesTransfersOnAChannel) {
  // Two results of 10 ms each over a link of one channel: the second arrives after 20 ms.
  const Problem world(graph_of(4, {{0, 2}, {1, 3}}, 8, 0, 1e-2), uniform_machine(2), {.links = Links::channels});
  EmulatedExecutor executor(world, {.time_scale = 1});
  EXPECT_GE(executor.time(on({0, 0, 1, 1})), 20e-3);
}

TEST(AnEmulatedExecutor, LeavesOutWhatTheEmulationAddsByItself) {
  // Two ops of 5 ms and a transfer of 5 ms between them, each with 40 ms that the emulation is said to add: 135 ms are
  // predicted, and 15 ms pass. The quickest of some runs, because a busy box delays single ones.
  GraphBuilder builder("test");
  for (int op = 0; op < 2; ++op) builder.add_op({.flops = 5e6});
  builder.add_consumer(builder.add_tensor(0, 8), 1);
  std::vector<Device> devices(2);
  devices[0] = {.name = "a", .type = "gpu", .rates = {{.flops_per_second = 1e9}}, .overhead = 40e-3};
  devices[1] = devices[0];
  devices[1].name = "b";
  const Machine machine("calibrated", devices, std::vector<Link>(4, Link{.latency = 45e-3}));
  const Problem world(std::move(builder).build(), machine.with_emulation(Emulation{40e-3, 40e-3, {}}));
  EmulatedExecutor executor(world, {.time_scale = 1});
  EXPECT_NEAR(Simulator(world).makespan(on({0, 1})), 135e-3, 1e-12);
  Seconds quickest = 1;
  for (int run = 0; run < 5; ++run) quickest = std::min(quickest, executor.time(on({0, 1})));
  EXPECT_GE(quickest, 15e-3);
  EXPECT_LT(quickest, 95e-3);
}

TEST(AnEmulatedExecutor, VariesByTheJitterOfTheMachineAnewInEveryRun) {
  // Forty equal ops of 1 ms on one device; a sigma of 0.5 makes them differ by far more than a busy box does, and no op
  // has the same factor in two runs.
  const Problem world(graph_of(40, {}, 0, 1e-3), uniform_machine(1).with_jitter(0.5));
  EmulatedExecutor executor(world, {.time_scale = 1});
  const Placement placement = on(std::vector<DeviceId>(40, 0));
  const auto shortest_and_longest = [](const Timeline& timeline) {
    std::vector<Seconds> times;
    for (const Timeline::Execution& execution : timeline.executions) times.push_back(execution.end - execution.start);
    return std::pair(*std::min_element(times.begin(), times.end()), *std::max_element(times.begin(), times.end()));
  };
  const auto [shortest, longest] = shortest_and_longest(executor.run(placement));
  EXPECT_LT(shortest, 0.8e-3);
  EXPECT_GT(longest, 1.5e-3);
  EXPECT_NE(shortest_and_longest(executor.run(placement)).first, shortest);
}

}  // namespace
}  // namespace doppler::test
