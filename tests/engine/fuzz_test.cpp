#include <gtest/gtest.h>

#include "tests/engine/support.h"

namespace doppler::test {
namespace {

// A machine of equal devices with the given capacity that makes some runs wait for memory and some impossible.
TEST(AnEngine, EndsWithAResultOrOneClearErrorOnTenThousandRandomRuns) {
  constexpr int kGraphs = 1000, kRunsPerGraph = 10;
  int completed = 0, out_of_memory = 0;
  for (int seed = 0; seed < kGraphs; ++seed) {
    Rng rng(static_cast<std::uint64_t>(seed));
    const OpId ops = 1 + rng.below(40);
    const DeviceId devices = 1 + rng.below(4);
    constexpr Bytes kCapacities[] = {0, 20'000, 50'000, 200'000};
    Rules rules;
    rules.discipline = static_cast<Discipline>(rng.below(4));
    rules.bulk_synchronous = rules.discipline == Discipline::fifo && rng.below(3) == 0;
    rules.links = rng.below(2) == 0 ? Links::free : Links::channels;
    Case world(random_graph(rng, ops), uniform_machine(devices, kCapacities[rng.below(4)]), rules);
    std::set<OpId> folding;
    for (OpId op = 0; op < ops; ++op)
      if (rng.below(4) == 0 && !world.graph.inputs(op).empty()) folding.insert(op);
    CheckingKernels kernels(world.graph, folding);
    Engine engine(world.problem, kernels, {.deterministic = rng.below(4) == 0});
    for (int run = 0; run < kRunsPerGraph; ++run) {
      try {
        engine.run(random_placement(rng, ops, devices));
        ++completed;
        const Bytes capacity = world.machine.device(0).memory;
        for (const Bytes peak : engine.timeline().peak_memory) ASSERT_TRUE(capacity == 0 || peak <= capacity);
      } catch (const InfeasibleError&) {
        ++out_of_memory;
      }
    }
  }
  EXPECT_EQ(completed + out_of_memory, kGraphs * kRunsPerGraph);
  // Both happen often, or the capacities test nothing.
  EXPECT_GT(completed, kGraphs * kRunsPerGraph / 2);
  EXPECT_GT(out_of_memory, kGraphs * kRunsPerGraph / 50);
}

}  // namespace
}  // namespace doppler::test
