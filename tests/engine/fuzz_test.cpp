#include <optional>

#include <gtest/gtest.h>

#include "doppler/engine/emulated/emulated_executor.h"
#include "tests/engine/support.h"
#include "tests/support/sanitized.h"

namespace doppler::test {
namespace {

// One random graph, machine and set of rules.
struct RandomCase {
  explicit RandomCase(std::uint64_t seed) : rng(seed) {
    const OpId ops = 1 + rng.below(40);
    const DeviceId devices = 1 + rng.below(4);
    constexpr Bytes kCapacities[] = {0, 20'000, 50'000, 200'000};
    Rules rules;
    rules.discipline = static_cast<Discipline>(rng.below(4));
    rules.bulk_synchronous = rules.discipline == Discipline::fifo && rng.below(3) == 0;
    rules.links = static_cast<Links>(rng.below(3));
    world.emplace(random_graph(rng, ops), uniform_machine(devices, kCapacities[rng.below(4)]), rules);
    for (OpId op = 0; op < ops; ++op)
      if (rng.below(4) == 0 && !world->graph().inputs(op).empty()) folding.insert(op);
  }
  // Everything that could ever be on one device at once.
  Bytes all_bytes() const {
    Bytes sum = 0;
    for (OpId op = 0; op < world->graph().op_count(); ++op) sum += world->graph().parameter_bytes(op);
    for (TensorId tensor = 0; tensor < world->graph().tensor_count(); ++tensor) sum += world->graph().bytes(tensor);
    return sum;
  }

  Rng rng;
  std::optional<Problem> world;
  std::set<OpId> folding;
};

struct Outcomes {
  int completed = 0, out_of_memory = 0;
};

void run_some(RandomCase& random, Executor& executor, int runs, Outcomes& outcomes) {
  const Bytes capacity = random.world->machine().device(0).memory;
  const bool must_fit = capacity == 0 || capacity >= random.all_bytes();
  for (int run = 0; run < runs; ++run) {
    try {
      executor.run(
          random_placement(random.rng, random.world->graph().op_count(), random.world->machine().device_count()));
      ++outcomes.completed;
    } catch (const InfeasibleError& error) {
      EXPECT_FALSE(must_fit) << error.what();
      ++outcomes.out_of_memory;
    }
  }
}

// Both happen often, or the capacities test nothing.
void expect_both(const Outcomes& outcomes, int runs) {
  EXPECT_EQ(outcomes.completed + outcomes.out_of_memory, runs);
  EXPECT_GT(outcomes.completed, runs / 2);
  EXPECT_GT(outcomes.out_of_memory, runs / 50);
}

TEST(AThreadsExecutor, EndsWithAResultOrOneClearErrorOnTenThousandRandomRuns) {
  constexpr int kGraphs = fewer_if_sanitized(1000), kRunsPerGraph = 10;
  Outcomes outcomes;
  for (int seed = 0; seed < kGraphs; ++seed) {
    RandomCase random(static_cast<std::uint64_t>(seed));
    ThreadsExecutor executor(*random.world,
                             {.kernels = std::make_shared<CheckingKernels>(*random.world, random.folding),
                              .deterministic = random.rng.below(4) == 0});
    run_some(random, executor, kRunsPerGraph, outcomes);
  }
  expect_both(outcomes, kGraphs * kRunsPerGraph);
}

TEST(AnEmulatedExecutor, EndsWithAResultOrOneClearErrorOnRandomRuns) {
  constexpr int kGraphs = fewer_if_sanitized(200), kRunsPerGraph = 5;
  Outcomes outcomes;
  for (int seed = 0; seed < kGraphs; ++seed) {
    RandomCase random(static_cast<std::uint64_t>(seed));
    EmulatedExecutor executor(*random.world, {.time_scale = 1});  // ops and transfers of up to 4 µs
    run_some(random, executor, kRunsPerGraph, outcomes);
  }
  expect_both(outcomes, kGraphs * kRunsPerGraph);
}

}  // namespace
}  // namespace doppler::test
