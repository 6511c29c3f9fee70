#include "doppler/place/simplify.h"

#include <gtest/gtest.h>

#include "doppler/analyse/fit.h"
#include "tests/support/problems.h"

namespace doppler {
namespace {

Placement simplified(const Problem& problem, const std::vector<DeviceId>& devices, double tolerance) {
  ExactObjective exact(problem);
  return simplify(exact, {.placement = {.device_of_op = devices}}, {.tolerance = tolerance}).placement;
}

TEST(Simplifying, UsesFewerDevicesWithinTheTolerance) {
  // Two tasks of 3 and 4: 4 on two devices, 7 on one, which is 75 % more.
  const Problem problem(test::graph_of({3, 4}, {}), uniform_machine(4));
  EXPECT_EQ(used_devices(problem, simplified(problem, {2, 3}, 0.76)), 1u);
  EXPECT_EQ(used_devices(problem, simplified(problem, {2, 3}, 0.74)), 2u);
}

TEST(Simplifying, CountsDevicesFromTheFirst) {
  const Problem problem(test::graph_of({3, 4}, {}), uniform_machine(4));
  EXPECT_EQ(simplified(problem, {2, 3}, 0).device_of_op, (std::vector<DeviceId>{0, 1}));
  EXPECT_EQ(simplified(problem, {3, 3}, 0).device_of_op, (std::vector<DeviceId>{0, 0}));
}

TEST(Simplifying, MovesLessWhereThatTakesAsLong) {
  // Op 0 (10) and op 1 (10) run beside one another; op 2 (1) reads 100 bytes of op 0, and takes no transfer time. On
  // device 1 it moves them for nothing.
  const Problem problem(test::graph_of({10, 10, 1}, {{0, 2, 0, 100}}), uniform_machine(2));
  const Placement result = simplified(problem, {0, 1, 1}, 0);
  EXPECT_EQ(result.device_of_op[2], result.device_of_op[0]);
  EXPECT_EQ(moved_bytes(problem.graph(), result.device_of_op), 0u);
  EXPECT_NE(result.device_of_op[0], result.device_of_op[1]);
}

TEST(Simplifying, KeepsPinsAndMemory) {
  const Graph graph = test::graph_of({1, 1}, {});
  const Problem pinned(graph, uniform_machine(2), {}, {{0, 1}});
  EXPECT_EQ(simplified(pinned, {1, 0}, 10).device_of_op, (std::vector<DeviceId>{1, 1}));
  GraphBuilder builder("test");
  for (int i = 0; i < 2; ++i) builder.add_op({.parameter_bytes = 60, .explicit_times = {{"*", 1.0}}});
  const Problem full(std::move(builder).build(), uniform_machine(2, 100));  // 120 bytes do not fit on one
  EXPECT_EQ(used_devices(full, simplified(full, {0, 1}, 10)), 2u);
}

TEST(AMisfit, IsExplainedWithWhatWouldFit) {
  // Three ops of 100 bytes on two devices of 120: each holds one. A third device is enough, and so is half the size.
  GraphBuilder builder("test");
  for (int i = 0; i < 3; ++i) builder.add_op({.parameter_bytes = 100, .explicit_times = {{"*", 1.0}}});
  const Problem problem(std::move(builder).build(), uniform_machine(2, 120));
  EXPECT_FALSE(fits_somehow(problem, Budget::unlimited()));
  const FitFacts facts = analyse_fit(problem, Budget::unlimited());
  EXPECT_EQ(facts.needed(), 300u);
  EXPECT_EQ(facts.available, 240u);
  ASSERT_EQ(facts.remedies.size(), 2u);
  EXPECT_EQ(facts.remedies[0], "1 more device like 'device0'");
}

TEST(AMachine, HasMoreDevicesLikeOneOfItsOwn) {
  const Machine more = load_machine("h100:2").with_more(0, 2);
  EXPECT_EQ(more.device_count(), 4u);
  EXPECT_EQ(more.link(0, 3), more.link(0, 1));
  EXPECT_EQ(more.device(3).memory, more.device(0).memory);
}

TEST(AMachineOfKinds, LinksDifferentKindsOverPcie) {
  const Machine mixed = load_machine("a100:2+l4:1+cpu:1");
  EXPECT_EQ(mixed.device_count(), 4u);
  EXPECT_EQ(mixed.device(2).name, "gpu2");
  EXPECT_EQ(mixed.device(3).name, "cpu0");
  EXPECT_EQ(mixed.link(0, 1).bytes_per_second, 270e9);  // 0.9 of 300 GB/s
  EXPECT_EQ(mixed.link(0, 2).bytes_per_second, 24e9);
  EXPECT_THROW(load_machine("h100:0"), std::exception);
  EXPECT_THROW(load_machine("h100:8+nothing:1"), std::exception);
}

TEST(ATopology, IsReadAsNvidiaSmiPrintsIt) {
  const std::string text =
      "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-31\nGPU1\tNV12\t X \t0-31\n\nLegend:\n  X = Self\n";
  const Machine machine = with_topology(load_machine("a100:2"), "topo", text);
  EXPECT_DOUBLE_EQ(machine.link(0, 1).bytes_per_second, 0.9 * 12 * 25e9);
  EXPECT_THROW(with_topology(load_machine("a100:3"), "topo", text), std::exception);
  EXPECT_THROW(with_topology(load_machine("a100:2"), "topo", "nothing"), std::exception);
}

}  // namespace
}  // namespace doppler
