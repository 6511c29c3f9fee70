#include "doppler/sim/varied_simulator.h"

#include <cmath>

#include <gtest/gtest.h>

#include "doppler/base/error.h"

namespace doppler {
namespace {

// Eight pairs of ops of 1 s; both ops of a pair are needed before the next may begin.
Graph ladder() {
  GraphBuilder builder("ladder");
  for (OpId op = 0; op < 16; ++op) builder.add_op({.explicit_times = {{"*", 1.0}}});
  for (OpId op = 0; op + 2 < 16; ++op)
    for (OpId next = op / 2 * 2 + 2; next < op / 2 * 2 + 4; ++next)
      builder.add_consumer(builder.add_tensor(op, 0, 0.0), next);
  return std::move(builder).build();
}

Machine two_devices(double jitter) {
  const Machine exact = uniform_machine(2);
  return Machine("two", {exact.device(0), exact.device(1)}, std::vector<Link>(4), Links::free, jitter);
}

Placement alternating() {
  Placement placement;
  for (DeviceId op = 0; op < 16; ++op) placement.device_of_op.push_back(op % 2);
  return placement;
}

TEST(AVariedSimulator, OfAMachineWhoseTimesDoNotVaryIsASimulator) {
  const Graph graph = ladder();
  const Machine machine = two_devices(0);
  const Costs costs(graph, machine);
  VariedSimulator simulator(Problem(costs, {}));
  EXPECT_EQ(simulator.noise(), 0);
  EXPECT_EQ(simulator.makespan(alternating()), 8);
}

TEST(AVariedSimulator, KnowsThatWaitingForTheSlowerOfTwoTakesLonger) {
  const Graph graph = ladder();
  const Machine machine = two_devices(0.2);
  const Costs costs(graph, machine);
  VariedSimulator simulator(Problem(costs, {}));
  EXPECT_EQ(simulator.noise(), 0.2);
  // The larger of two normal draws is sigma / sqrt(pi) above their mean on average; eight times. A lognormal factor is a
  // little different, and the median of 31 sums has an error of some per cent.
  const double longer = 8 * (1 + 0.2 / std::sqrt(3.14159));
  EXPECT_NEAR(simulator.makespan(alternating()), longer, 0.05 * longer);
  // Nobody waits on a single device: the sum of 16 draws.
  EXPECT_NEAR(simulator.makespan({std::vector<DeviceId>(16, 0), {}, {}}), 16, 0.05 * 16);
}

TEST(AVariedSimulator, GoesByTheRulesBeforeTheMachine) {
  const Graph graph = ladder();
  const Machine machine = two_devices(0.2);
  const Costs costs(graph, machine);
  EXPECT_EQ(VariedSimulator(Problem(costs, {.noise = 0.5})).noise(), 0.5);
  EXPECT_EQ(VariedSimulator(Problem(costs, {}), 0).makespan(alternating()), 8);
}

}  // namespace
}  // namespace doppler
