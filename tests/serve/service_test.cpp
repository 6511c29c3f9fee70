#include "doppler/serve/service.h"

#include <array>
#include <set>

#include <gtest/gtest.h>

#include "doppler/graph/generate.h"
#include "doppler/objective.h"

namespace doppler {
namespace {

// Runs as simulated; device 0 and with it every run can be slowed down, and a run can be interrupted.
class SlowableSystem final : public Executor, public ChangeableDevices {
 public:
  explicit SlowableSystem(Problem problem) : objective_(std::move(problem)) {}
  std::string_view name() const override { return "slowable"; }
  const Problem& problem() const override { return objective_.problem(); }
  Timeline run(const Placement& placement) override {
    if (runs++ == interrupted_at) throw RunCancelled("run: interrupted");
    for (const DeviceId device : placement.device_of_op)
      if (gone.contains(device)) throw DeviceGone(device, "device: does not answer");
    Timeline timeline = objective_.simulate(placement);
    timeline.makespan *= factor;
    return timeline;
  }

  bool answers(DeviceId device) override { return !gone.contains(device); }
  ChangeableDevices* changeable() override { return this; }
  void slow_down(DeviceId device, double how) override {
    slowed.push_back({device, device, runs});
    factor = how;
  }
  void slow_down(DeviceId src, DeviceId dst, double) override { slowed.push_back({src, dst, runs}); }
  void set_present(DeviceId device, bool present) override {
    if (present)
      gone.erase(device);
    else
      gone.insert(device);
  }

  std::vector<std::array<std::size_t, 3>> slowed;  // from, to, after so many runs
  std::set<DeviceId> gone;
  double factor = 1;
  std::size_t runs = 0, interrupted_at = 1'000'000;

 private:
  ExactObjective objective_;
};

struct AService : testing::Test {
  const Problem problem{generate_layered({.ops = 20, .width = 4, .degree = 2, .seed = 1, .costs = {}}),
                        load_machine("p100x4")};
  const Placement start{std::vector<DeviceId>(20, 0), {}, {}};
  DeploymentOptions no_search() const {
    DeploymentOptions options;
    options.explore_share = 0;
    return options;
  }
  SlowableSystem system{problem};
  Deployment deployment{problem, start, no_search()};
  const Seconds makespan = ExactObjective(problem).value(start);
};

TEST_F(AService, LetsADeviceDriftAtTheRunThatTheScheduleNames) {
  ServiceOptions options{.runs = 60, .drifts = {{.device = 0, .factor = 3, .run = 30}}};
  std::size_t reported = 0;
  options.on_run = [&](std::size_t run, Seconds, bool challenger) {
    EXPECT_EQ(run, reported++);
    EXPECT_FALSE(challenger);
  };
  const ServiceResult service = run_service(system, deployment, options);
  EXPECT_EQ(system.slowed, (std::vector<std::array<std::size_t, 3>>{{0, 0, 30}}));
  EXPECT_EQ(service.times.size(), 60U);
  EXPECT_EQ(reported, 60U);
  EXPECT_EQ(deployment.runs(), 60U);
  const ServiceResult::Drift& drift = service.drifts.at(0);
  EXPECT_DOUBLE_EQ(service.at_first.value(), makespan);
  EXPECT_DOUBLE_EQ(drift.before.value(), makespan);
  EXPECT_DOUBLE_EQ(drift.right_after.value(), 3 * makespan);
  EXPECT_DOUBLE_EQ(service.at_the_end.value(), 3 * makespan);
}

TEST_F(AService, RepeatsALostRunWithoutTheDeviceAndAsksAfterIt) {
  // Everything is on device 0, which is gone from run 10 to 20: one run is lost, and the device is asked after 5 runs
  // (not there) and after 10 (there).
  ServiceOptions options{.runs = 40,
                         .drifts = {{.change = Drift::Change::gone, .device = 0, .run = 10},
                                    {.change = Drift::Change::back, .device = 0, .run = 18}}};
  const ServiceResult service = run_service(system, deployment, options);
  EXPECT_EQ(service.times.size(), 40U);
  EXPECT_EQ(system.runs, 41U);
  EXPECT_EQ(service.lost, 1U);
  EXPECT_EQ(service.changes, 1U);
  EXPECT_EQ(service.ended, std::nullopt);
  ASSERT_EQ(service.events.size(), 2U);
  EXPECT_EQ(service.events[0].kind, "gone");
  EXPECT_EQ(service.events[0].run, 10U);
  EXPECT_EQ(service.events[1].kind, "back");
  EXPECT_EQ(service.events[1].run, 20U);
}

TEST_F(AService, EndsWithWhatItHasIfNoDeviceIsLeft) {
  ServiceOptions options{.runs = 40};
  for (const DeviceId device : {0U, 1U, 2U, 3U})
    options.drifts.push_back({.change = Drift::Change::gone, .device = device, .run = 10});
  const ServiceResult service = run_service(system, deployment, options);
  EXPECT_EQ(service.times.size(), 10U);
  ASSERT_TRUE(service.ended);
  EXPECT_NE(service.ended->find("no device that is left can run op"), std::string::npos) << *service.ended;
}

TEST_F(AService, SlowsALinkDownInBothDirections) {
  ServiceOptions options{.runs = 3, .drifts = {{.device = 1, .peer = 2, .factor = 4, .run = 2}}};
  const ServiceResult service = run_service(system, deployment, options);
  EXPECT_EQ(system.slowed, (std::vector<std::array<std::size_t, 3>>{{1, 2, 2}, {2, 1, 2}}));
  EXPECT_EQ(service.drifts.at(0).name, "gpu1-gpu2");
}

TEST_F(AService, ReadsDriftsAndRefusesWhatIsNone) {
  const Machine& machine = problem.machine();
  const Drift link = parse_drift("gpu0-gpu1=4@100", machine);
  EXPECT_EQ(link.device, 0U);
  EXPECT_EQ(link.peer, 1U);
  EXPECT_EQ(link.factor, 4);
  EXPECT_EQ(link.run, 100U);
  EXPECT_EQ(parse_drift("2-3=4@1", machine).peer, 3U);
  EXPECT_EQ(parse_drift("gpu2=gone@7", machine).change, Drift::Change::gone);
  EXPECT_EQ(parse_drift("2=back@9", machine).change, Drift::Change::back);
  for (const char* text : {"gpu0-gpu1=gone@1", "gpu0-gpu0=2@1", "gpu0-gpu9=2@1", "gpu0=away@1", "gpu0=2", "=2@1",
                           "gpu0=2@", "gpu0=2@x", "gpu0=-2@3", "gpu0=0@3"})
    EXPECT_THROW(parse_drift(text, machine), InputError) << text;
}

TEST_F(AService, KeepsTheRunsBeforeAnInterruption) {
  system.interrupted_at = 7;
  EXPECT_EQ(run_service(system, deployment, {.runs = 20}).times.size(), 7U);
  std::stop_source user;
  user.request_stop();
  EXPECT_TRUE(run_service(system, deployment, {.runs = 20, .stop = user.get_token()}).times.empty());
}

TEST_F(AService, HasNoTypicalTimesIfNothingRan) {
  system.interrupted_at = 0;
  const ServiceResult service = run_service(system, deployment, {.runs = 5, .drifts = {{.run = 0}}});
  EXPECT_EQ(service.at_first, std::nullopt);
  EXPECT_EQ(service.at_the_end, std::nullopt);
  EXPECT_TRUE(service.drifts.empty());
}

}  // namespace
}  // namespace doppler
