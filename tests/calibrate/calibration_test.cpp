#include "doppler/calibrate/calibration.h"

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/sim/simulator.h"

namespace doppler {
namespace {

constexpr double kRounding = 1e-9;

TEST(ALinkFit, FindsLatencyAndBandwidth) {
  const LinkFit fit = fit_link({{0, 1e-5}, {1000, 1.1e-5}, {1'000'000, 1e-5 + 1e-3}});  // 1 ns per byte
  EXPECT_NEAR(fit.latency, 1e-5, kRounding * 1e-5);
  EXPECT_NEAR(fit.per_byte, 1e-9, kRounding * 1e-9);
}

TEST(ALinkFit, IsNeverNegative) {
  EXPECT_GE(fit_link({{1000, 1e-5}, {2000, 1e-6}}).per_byte, 0);  // larger was faster
  EXPECT_GE(fit_link({{1000, 1e-6}, {2000, 1e-5}}).latency, 0);   // a line through negative times
  EXPECT_EQ(fit_link({{1000, 2e-6}}).latency, 2e-6);              // one size only
  EXPECT_EQ(fit_link({}).latency, 0);
}

// Two kinds of ops on two devices; simulating them on the true machine plays the part of the real run.
struct World {
  World() : graph(make_graph()), truth(machine_of(2e9, 1e-4, 1e9)), guess(machine_of(1e12, 0, 0)) {}
  static Graph make_graph() {
    GraphBuilder builder("test");
    for (int i = 0; i < 6; ++i) {
      OpSpec spec;
      spec.kind = i % 2 == 0 ? "matmul" : "elementwise";
      spec.flops = 1e6 * (1 + i);
      builder.add_op(spec);
      if (i > 0) builder.add_consumer(builder.add_tensor(static_cast<OpId>(i - 1), 1000U << i), static_cast<OpId>(i));
    }
    return std::move(builder).build();
  }
  static Machine machine_of(double rate, Seconds latency, double bandwidth) {
    Device device;
    device.type = "cpu";
    device.rates = {{"*", "*", rate / 2}, {"matmul", "*", rate}};
    std::vector<Device> devices(2, device);
    devices[0].name = "a";
    devices[1].name = "b";
    return Machine("test", devices, std::vector<Link>(4, Link{latency, bandwidth, 1, 1}));
  }
  Graph graph;
  Machine truth, guess;
};

TEST(ACalibration, OfRunsOnAMachineFindsTheMachine) {
  const World world;
  const Costs true_costs(world.graph, world.truth);
  const Problem true_problem(world.graph, world.truth);
  Calibration calibration(world.guess, false);
  for (const std::vector<DeviceId>& devices : {std::vector<DeviceId>{0, 1, 0, 1, 0, 1}, {0, 0, 1, 1, 0, 1}})
    calibration.add(true_problem, {devices, {}, {}}, Simulator(true_problem).simulate({devices, {}, {}}));
  const Machine found = calibration.machine("found");
  const Costs costs(world.graph, found);
  for (OpId op = 0; op < 6; ++op) EXPECT_NEAR(costs.op_time(op, 0), true_costs.op_time(op, 0), kRounding);
  EXPECT_NEAR(found.link(0, 1).latency, 1e-4, kRounding);
  EXPECT_NEAR(found.link(0, 1).bytes_per_second, 1e9, 1);
  // An op that no run had goes by its kind's rate.
  GraphBuilder builder("other");
  OpSpec spec;
  spec.kind = "matmul";
  spec.flops = 2e9;
  builder.add_op(spec);
  const Graph other = std::move(builder).build();
  EXPECT_NEAR(Costs(other, found).op_time(0, 0), 1, 0.01);
}

TEST(ACalibration, WhereReceiversCopyCountsTheCopyAlone) {
  // The receiver is busy with other ops when it is asked, so copies begin late; what they take is what the link takes.
  const World world;
  const Machine truth("copies", {world.truth.device(0), world.truth.device(1)},
                      std::vector<Link>(4, world.truth.link(0, 1)), Links::receiver);
  const Problem problem(world.graph, truth, {.links = Links::receiver});
  Calibration calibration(truth, false);
  for (const std::vector<DeviceId>& devices : {std::vector<DeviceId>{0, 1, 0, 1, 0, 1}, {0, 0, 1, 1, 0, 1}})
    calibration.add(problem, {devices, {}, {}}, Simulator(problem).simulate({devices, {}, {}}));
  const Machine found = calibration.machine("found");
  EXPECT_EQ(found.link_model(), Links::receiver);
  EXPECT_NEAR(found.link(0, 1).latency, 1e-4, kRounding);
  EXPECT_NEAR(found.link(0, 1).bytes_per_second, 1e9, 1);
}

TEST(ACalibration, WhereDevicesHaveOneMemoryFindsTheLatencyAlone) {
  // Op 1 on device 1 waits for op 0 on device 0, so that the news of its tensor, 0.1 ms, is seen; bytes take no time.
  const World world;
  const Machine truth("cores", {world.truth.device(0), world.truth.device(1)},
                      std::vector<Link>(4, Link{.latency = 1e-4}), Links::shared);
  const Problem problem(world.graph, truth, {.links = Links::shared});
  Calibration calibration(truth, false);
  for (const std::vector<DeviceId>& devices : {std::vector<DeviceId>{0, 1, 0, 1, 0, 1}, {0, 0, 1, 1, 0, 1}})
    calibration.add(problem, {devices, {}, {}}, Simulator(problem).simulate({devices, {}, {}}));
  const Machine found = calibration.machine("found");
  EXPECT_EQ(found.link_model(), Links::shared);
  EXPECT_NEAR(found.link(0, 1).latency, 1e-4, kRounding);
  EXPECT_EQ(found.link(0, 1).bytes_per_second, 0);
}

// Emulated devices on which every op takes 50 µs and every transfer 30 µs longer than modelled.
struct SlowWorld : World {
  static Machine slowed(const Machine& truth) {
    std::vector<Device> slow{truth.device(0), truth.device(1)};
    for (Device& device : slow) device.overhead = 5e-5;
    return Machine("reality", slow, std::vector<Link>(4, Link{1.3e-4, 1e9, 1, 1}));
  }
  Timeline run() const { return Simulator(real_problem).simulate(placement); }

  const Placement placement{{0, 1, 0, 1, 0, 1}, {}, {}};
  const Machine reality = slowed(truth);
  const Problem problem{graph, truth}, real_problem{graph, reality};
};

TEST(ACalibration, OfEmulatedDevicesAddsWhatOpsAndTransfersTakeLonger) {
  const SlowWorld world;
  Calibration calibration(world.truth, true);
  calibration.add(world.problem, world.placement, world.run());
  const Machine found = calibration.machine("found");
  EXPECT_NEAR(found.device(0).overhead, 5e-5, kRounding);
  EXPECT_NEAR(found.link(0, 1).latency, 1.3e-4, kRounding);
  EXPECT_EQ(found.link(0, 1).bytes_per_second, 1e9);
  // The machine knows what of it is the emulation's, which has none to begin with.
  ASSERT_TRUE(found.emulation());
  EXPECT_NEAR(found.emulation()->overhead, 5e-5, kRounding);
  EXPECT_NEAR(found.emulation()->latency, 3e-5, kRounding);
  EXPECT_NEAR(found.without_emulation().device(0).overhead, 0, kRounding);
  EXPECT_NEAR(found.without_emulation().link(0, 1).latency, 1e-4, kRounding);
}

TEST(ACalibration, OfAMachineThatWasCalibratedEmulatedFindsTheSame) {
  const SlowWorld world;
  Calibration first(world.truth, true);
  first.add(world.problem, world.placement, world.run());
  const Machine once = first.machine("once");
  Calibration again(once, true);
  again.add(world.problem.on(once), world.placement, world.run());
  const Machine twice = again.machine("twice");
  EXPECT_NEAR(twice.device(0).overhead, 5e-5, kRounding);
  EXPECT_NEAR(twice.link(0, 1).latency, 1.3e-4, kRounding);
  EXPECT_NEAR(twice.emulation()->overhead, 5e-5, kRounding);
  EXPECT_NEAR(twice.emulation()->latency, 3e-5, kRounding);
}

TEST(ACalibration, IsStretchedByWhatNoOpAndNoTransferAccountsFor) {
  // Whole runs take a quarter longer than their ops and transfers explain.
  const World world;
  const Problem problem(world.graph, world.truth);
  Calibration calibration(world.guess, false);
  const Placement placement{{0, 1, 0, 1, 0, 1}, {}, {}};
  Timeline timeline = Simulator(problem).simulate(placement);
  timeline.makespan *= 1.25;
  calibration.add(problem, placement, timeline);
  const Machine found = calibration.machine("found");
  EXPECT_NEAR(Simulator(Problem(world.graph, found)).makespan(placement), timeline.makespan, kRounding);
}

TEST(ACalibration, WritesHowMuchTimesVary) {
  const World world;
  const Placement placement{{0, 1, 0, 1, 0, 1}, {}, {}};
  const Problem problem(world.graph, world.truth);
  Calibration calibration(world.guess, false);
  for (int run = 0; run < 20; ++run) {
    Timeline timeline = Simulator(problem).simulate(placement);
    timeline.executions[run % 6].end += 1e-4;
    calibration.add(problem, placement, timeline);
  }
  EXPECT_TRUE(calibration.jitter().varies());
  EXPECT_EQ(calibration.machine("found").jitter(), calibration.jitter());
}

TEST(ACalibration, OfEmulatedDevicesIsStretchedToo) {
  const SlowWorld world;
  Calibration calibration(world.truth, true);
  Timeline timeline = world.run();
  timeline.makespan += 2e-4;  // that no op and no transfer took
  calibration.add(world.problem, world.placement, timeline);
  const Machine found = calibration.machine("found");
  EXPECT_NEAR(Simulator(Problem(world.graph, found)).makespan(world.placement), timeline.makespan, kRounding);
  EXPECT_GT(calibration.stretch(), 1);
}

TEST(ACalibration, RefusesGraphsThatBringTheirTimes) {
  GraphBuilder builder("timed");
  builder.add_op({.explicit_times = {{"*", 1}}});
  const Graph graph = std::move(builder).build();
  const Machine machine = uniform_machine(1);
  const Problem problem(graph, machine);
  Calibration calibration(machine, false);
  const Placement placement{{0}, {}, {}};
  EXPECT_THROW(calibration.add(problem, placement, Simulator(problem).simulate(placement)), InputError);
}

TEST(ACalibration, WithoutRunsOrTransfersIsRefused) {
  const World world;
  const Problem problem(world.graph, world.truth);
  Calibration calibration(world.truth, false);
  EXPECT_THROW(calibration.machine("none"), InputError);
  const Placement one_device{{0, 0, 0, 0, 0, 0}, {}, {}};
  calibration.add(problem, one_device, Simulator(problem).simulate(one_device));
  EXPECT_THROW(calibration.machine("no transfers"), InputError);
}

}  // namespace
}  // namespace doppler
