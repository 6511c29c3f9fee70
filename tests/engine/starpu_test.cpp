#include <gtest/gtest.h>

#include "doppler/base/pin_thread.h"
#include "doppler/engine/starpu/starpu_executor.h"
#include "tests/engine/support.h"

// StarPU itself, through the module that the command opens. There is one StarPU in a process, and it has a worker per core.
namespace doppler::test {
namespace {

DeviceId devices_here() { return std::min(2U, usable_cores()); }

TEST(AStarpuExecutor, RunsEveryOpOnceAndInOrderOfDependencies) {
  for (const Discipline discipline : {Discipline::fifo, Discipline::priority}) {
    Rng rng(3);
    const Problem world(random_graph(rng, 200), uniform_machine(devices_here()), {.discipline = discipline});
    const auto kernels = std::make_shared<CheckingKernels>(world);
    StarpuExecutor executor(world, {.kernels = kernels});
    for (int round = 1; round <= 3; ++round) {
      const Placement placement = random_placement(rng, 200, devices_here());
      const Timeline timeline = executor.run(placement);
      expect_legal(world, placement, timeline);
      EXPECT_EQ(kernels->runs(), std::vector<int>(200, round));
    }
  }
}

TEST(AStarpuExecutor, WaitsForTheNextOpUnderOrderedThoughAnotherIsReady) {
  // On one device op 1 comes before op 2 by rank, but waits for op 0, which comes last of the other device's.
  const DeviceId last = devices_here() - 1;
  const Problem world(graph_of(3, {{0, 1}}, 8), uniform_machine(devices_here()), {.discipline = Discipline::ordered});
  StarpuExecutor executor(world, {.kernels = std::make_shared<CheckingKernels>(world)});
  const Timeline timeline = executor.run(on({0, last, last}, {0, 1, 2}));
  std::vector<OpId> order = order_of(timeline, last);
  EXPECT_EQ(std::vector<OpId>(order.end() - 2, order.end()), (std::vector<OpId>{1, 2}));
}

struct ThrowsOnce : CheckingKernels {
  using CheckingKernels::CheckingKernels;
  void before(OpId op, DeviceId) override {
    if (op == bad) throw std::runtime_error("division by zero");
  }
  OpId bad = 2;
};

TEST(AStarpuExecutor, ReportsAKernelThatThrowsWithItsOpAndRunsAgain) {
  const Problem world(graph_of(4, {{0, 1}, {1, 2}, {2, 3}}, 8192), uniform_machine(1));
  const auto kernels = std::make_shared<ThrowsOnce>(world);
  StarpuExecutor executor(world, {.kernels = kernels});
  try {
    executor.run(on({0, 0, 0, 0}));
    FAIL() << "the kernel threw";
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "op 'op2' on device 'device0': division by zero");
  }
  kernels->bad = 99;
  EXPECT_GT(executor.run(on({0, 0, 0, 0})).makespan, 0);
}

TEST(AStarpuExecutor, RunsBesideOthersThatExist) {
  Rng rng(5);
  const Problem world(random_graph(rng, 50), uniform_machine(devices_here()));
  const auto first = std::make_shared<CheckingKernels>(world), second = std::make_shared<CheckingKernels>(world);
  StarpuExecutor one(world, {.kernels = first}), two(world, {.kernels = second});
  for (int round = 1; round <= 3; ++round)
    for (StarpuExecutor* executor : {&one, &two}) executor->run(random_placement(rng, 50, devices_here()));
  EXPECT_EQ(first->runs(), std::vector<int>(50, 3));
  EXPECT_EQ(second->runs(), std::vector<int>(50, 3));
}

TEST(AStarpuExecutor, RefusesMoreDevicesThanItHasWorkersAndRulesThatItDoesNotKnow) {
  const Problem many(graph_of(2, {{0, 1}}, 8), uniform_machine(1000));
  EXPECT_THROW(StarpuExecutor(many, {.kernels = std::make_shared<CheckingKernels>(many)}), InputError);
  const Problem random(graph_of(2, {{0, 1}}, 8), uniform_machine(1), {.discipline = Discipline::random});
  EXPECT_THROW(StarpuExecutor(random, {.kernels = std::make_shared<CheckingKernels>(random)}), InputError);
}

}  // namespace
}  // namespace doppler::test
