#include "doppler/serve/service.h"

#include <gtest/gtest.h>

#include "doppler/graph/generate.h"
#include "doppler/objective.h"

namespace doppler {
namespace {

// Runs as simulated; device 0 and with it every run can be slowed down, and a run can be interrupted.
class SlowableSystem final : public Executor {
 public:
  explicit SlowableSystem(Problem problem) : objective_(std::move(problem)) {}
  std::string_view name() const override { return "slowable"; }
  const Problem& problem() const override { return objective_.problem(); }
  Timeline run(const Placement& placement) override {
    if (runs++ == interrupted_at) throw RunCancelled("run: interrupted");
    Timeline timeline = objective_.simulate(placement);
    timeline.makespan *= factor;
    return timeline;
  }

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
  options.slow_down = [&](DeviceId device, double factor) {
    EXPECT_EQ(device, 0U);
    EXPECT_EQ(system.runs, 30U);
    system.factor = factor;
  };
  std::size_t reported = 0;
  options.on_run = [&](std::size_t run, Seconds, bool challenger) {
    EXPECT_EQ(run, reported++);
    EXPECT_FALSE(challenger);
  };
  const ServiceResult service = run_service(system, deployment, options);
  EXPECT_EQ(service.times.size(), 60U);
  EXPECT_EQ(reported, 60U);
  EXPECT_EQ(deployment.runs(), 60U);
  const ServiceResult::Drift& drift = service.drifts.at(0);
  EXPECT_DOUBLE_EQ(service.at_first.value(), makespan);
  EXPECT_DOUBLE_EQ(drift.before.value(), makespan);
  EXPECT_DOUBLE_EQ(drift.right_after.value(), 3 * makespan);
  EXPECT_DOUBLE_EQ(service.at_the_end.value(), 3 * makespan);
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
  const ServiceResult service =
      run_service(system, deployment, {.runs = 5, .drifts = {{.run = 0}}, .slow_down = [](DeviceId, double) {}});
  EXPECT_EQ(service.at_first, std::nullopt);
  EXPECT_EQ(service.at_the_end, std::nullopt);
  EXPECT_TRUE(service.drifts.empty());
}

}  // namespace
}  // namespace doppler
