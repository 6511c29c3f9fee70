#include "doppler/serve/deployment.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "doppler/base/rng.h"
#include "doppler/base/statistics.h"
#include "doppler/errors.h"
#include "doppler/graph/generate.h"
#include "doppler/learn/doppler/doppler_policy.h"
#include "doppler/learn/train/trained_policy.h"
#include "doppler/place/list/heft.h"
#include "doppler/place/search/anneal.h"
#include "tests/support/problems.h"

namespace doppler {
namespace {

using Kind = DeploymentEvent::Kind;

Graph served_graph(double communication = 0.1) {
  GeneratedCosts costs;
  costs.communication_ratio = communication;
  return generate_layered({.ops = 60, .width = 8, .degree = 2, .seed = 3, .costs = costs});
}

Machine machine_with(DeviceId slow, double slowdown, double slow_link = 1) {
  const Machine equal = load_machine("p100x4");
  std::vector<Device> devices;
  std::vector<Link> links;
  for (DeviceId src = 0; src < equal.device_count(); ++src) {
    devices.push_back(equal.device(src));
    if (src == slow) devices.back().slowdown = slowdown;
    for (DeviceId dst = 0; dst < equal.device_count(); ++dst) {
      links.push_back(equal.link(src, dst));
      if (src + dst != 1) continue;  // it is not the link between devices 0 and 1
      links.back().latency *= slow_link;
      links.back().bytes_per_second /= slow_link;
      links.back().cost_factor *= slow_link;
    }
  }
  return Machine("slowed", devices, links);
}

// The system that is served: a simulator of a machine that the deployment does not know, with seeded noise on every op
// and on the makespan.
class HiddenSystem {
 public:
  HiddenSystem(double slowdown, double noise, std::uint64_t seed, double slow_link = 1, double communication = 0.1)
      : world(served_graph(communication), machine_with(0, slowdown, slow_link)), noise_(noise), rng_(seed) {}

  Timeline run(const Placement& placement) {
    Timeline timeline = test::simulate(world, placement);
    for (Timeline::Execution& op : timeline.executions) op.end = op.start + (op.end - op.start) * factor();
    for (Timeline::Transfer& move : timeline.transfers) move.end = move.start + (move.end - move.start) * factor();
    timeline.makespan *= factor();
    return timeline;
  }

  Problem world;

 private:
  double factor() { return std::exp(noise_ * rng_.normal()); }
  double noise_;
  Rng rng_;
};

MethodOptions evaluations(std::uint64_t count) {
  MethodOptions options;
  options.budget = Budget::for_evaluations(count);
  return options;
}

Placement good_placement(const Problem& problem) {
  ExactObjective objective(problem);
  return anneal_from(problem, objective, evaluations(20'000), {heft(problem, objective, {}).placement}).placement;
}

DeploymentOptions quick(std::uint64_t seed) {
  DeploymentOptions options;
  options.search_evaluations = 3'000;
  options.seed = seed;
  return options;
}

std::size_t count(const Deployment& deployment, Kind kind) {
  return static_cast<std::size_t>(std::count_if(deployment.events().begin(), deployment.events().end(),
                                                [&](const DeploymentEvent& event) { return event.kind == kind; }));
}

// Whoever serves: asks, runs, reports.
std::vector<Seconds> serve(Deployment& deployment, HiddenSystem& system, int runs) {
  std::vector<Seconds> times;
  for (int i = 0; i < runs; ++i) {
    const Timeline timeline = system.run(deployment.next());
    times.push_back(timeline.makespan);
    deployment.observe(timeline.makespan, timeline);
  }
  return times;
}

TEST(ADeployment, KeepsItsIncumbentWhereASearchHasNoTimeOrIsStopped) {
  const Problem problem(generate_layered({.ops = 4000, .width = 20, .degree = 2, .seed = 1, .costs = {}}),
                        load_machine("v100x8"));
  const Placement start{std::vector<DeviceId>(problem.op_count(), 0), {}, {}};
  DeploymentOptions no_time;
  no_time.search_time = 1e-4;
  no_time.policy = std::make_shared<TrainedPolicy>("shipped", shipped_policy(), TrainedPolicyOptions{});
  DeploymentOptions stopped = no_time;
  stopped.search_time = 10;
  std::stop_source user;
  user.request_stop();
  stopped.stop = user.get_token();
  ExactObjective system(problem);
  const Timeline timeline = system.simulate(start);
  for (const DeploymentOptions& options : {no_time, stopped}) {
    Deployment deployment(problem, start, options);
    for (int run = 0; run < 8; ++run) {
      deployment.next();
      deployment.observe(timeline.makespan, timeline);
    }
    EXPECT_EQ(deployment.runs(), 8U);
  }
}

TEST(ADeployment, AdaptsToADeviceThatBecomesTwiceAsSlow) {
  HiddenSystem before(1, 0.02, 1), after(2, 0.02, 2);
  const Placement start = good_placement(before.world);
  Deployment deployment(before.world, start, quick(0));
  serve(deployment, before, 100);
  EXPECT_EQ(count(deployment, Kind::drift), 0U);
  serve(deployment, after, 100);

  const Seconds unadapted = test::makespan(after.world, {start});
  const Seconds adapted = test::makespan(after.world, {deployment.incumbent()});
  const Seconds possible = test::makespan(after.world, {good_placement(after.world)});
  EXPECT_GE(count(deployment, Kind::drift), 1U);
  EXPECT_GE(deployment.changes(), 1U);
  EXPECT_LT(adapted, 0.9 * unadapted) << "possible " << possible;
  // Within a tenth of what knowing the slowed machine is worth; the search of a deployment is short.
  EXPECT_LT(adapted, 1.1 * possible);
  EXPECT_NEAR(deployment.ratios().ratio(0), 2, 0.1);
  EXPECT_NEAR(deployment.ratios().ratio(1), 1, 0.05);
}

TEST(ADeployment, AdaptsToALinkThatBecomesSixTimesAsSlow) {
  // Transfers take as long as ops, so that it matters which link they take.
  HiddenSystem before(1, 0.02, 1, 1, 1), after(1, 0.02, 2, 6, 1);
  const Placement start = good_placement(before.world);
  Deployment deployment(before.world, start, quick(0));
  serve(deployment, before, 100);
  EXPECT_EQ(count(deployment, Kind::drift), 0U);
  serve(deployment, after, 120);
  const Seconds unadapted = test::makespan(after.world, {start});
  const Seconds adapted = test::makespan(after.world, {deployment.incumbent()});
  EXPECT_GE(count(deployment, Kind::drift), 1U);
  EXPECT_GE(deployment.changes(), 1U);
  EXPECT_LT(adapted, 0.97 * unadapted);
  // Believed for 5 / 5.5 of the logarithm right after the drift, and for more later; unless nobody uses it any more.
  EXPECT_GT(deployment.ratios().ratio(0, 1), 2.5);
  EXPECT_NEAR(deployment.ratios().ratio(2, 3), 1, 0.05);
}

// Serves on a system of which a device is gone.
std::size_t serve_without(Deployment& deployment, HiddenSystem& system, DeviceId gone, int runs) {
  std::size_t lost = 0;
  for (int i = 0; i < runs; ++i) {
    for (const DeviceId device : deployment.worth_asking()) deployment.asked(device, device != gone);
    const Placement& placement = deployment.next();
    if (std::count(placement.device_of_op.begin(), placement.device_of_op.end(), gone) > 0) {
      const DeviceId devices[] = {gone};
      deployment.lose(devices);
      ++lost;
      --i;  // the run is repeated
      continue;
    }
    const Timeline timeline = system.run(placement);
    deployment.observe(timeline.makespan, timeline);
  }
  return lost;
}

TEST(ADeployment, GoesOnWithoutADeviceThatIsGoneAndUsesItAgainWhenItIsBack) {
  constexpr DeviceId kNobody = 99;
  HiddenSystem system(1, 0.02, 1);
  const Placement start = good_placement(system.world);
  Deployment deployment(system.world, start, quick(0));
  serve_without(deployment, system, kNobody, 40);
  EXPECT_EQ(serve_without(deployment, system, 2, 60), 1U) << "one run tells";
  EXPECT_EQ(deployment.lost(), 1U);
  EXPECT_EQ(count(deployment, Kind::gone), 1U);
  EXPECT_EQ(count(deployment, Kind::back), 0U);
  // What takes over is about as good as a search that knows that the device is not there.
  const DeviceId gone[] = {2};
  const Problem rest = system.world.without(gone);
  EXPECT_LT(test::makespan(rest, {deployment.incumbent()}), 1.1 * test::makespan(rest, {good_placement(rest)}));

  serve_without(deployment, system, kNobody, 60);
  EXPECT_EQ(count(deployment, Kind::back), 1U);
  EXPECT_LT(test::makespan(system.world, {deployment.incumbent()}), 1.05 * test::makespan(system.world, {start}));
  EXPECT_EQ(deployment.lost(), 1U);
}

TEST(ADeployment, AsksLessAndLessOftenAfterADeviceThatOnlyPretendsToBeBack) {
  // The device always says that it is there, and every run that needs it is lost. The distances are 5, 10, 20, 40 …
  // runs, so that it is lost at most after 0, 5, 15, 35, 75 and 155 runs; 160 more are beyond 300.
  HiddenSystem system(1, 0.02, 1);
  Deployment deployment(system.world, good_placement(system.world), quick(0));
  for (int run = 0; run < 300;) {
    for (const DeviceId device : deployment.worth_asking()) deployment.asked(device, true);
    const Placement& placement = deployment.next();
    const DeviceId devices[] = {2};
    if (std::count(placement.device_of_op.begin(), placement.device_of_op.end(), 2U) > 0) {
      deployment.lose(devices);
      continue;
    }
    const Timeline timeline = system.run(placement);
    deployment.observe(timeline.makespan, timeline);
    ++run;
  }
  EXPECT_GE(deployment.lost(), 2U);
  EXPECT_LE(deployment.lost(), 6U);
}

TEST(ADeployment, SaysSoIfNothingCanRunWithoutTheDeviceThatIsGone) {
  Problem model(served_graph(), machine_with(0, 1), {}, {{7, 3}});
  Placement start{std::vector<DeviceId>(60, 0), {}, {}};
  start.device_of_op[7] = 3;
  Deployment deployment(model, start, quick(0));
  deployment.next();
  const DeviceId devices[] = {3};
  try {
    deployment.lose(devices);
    FAIL() << "op 7 has no other device";
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("no device that is left can run op"), std::string::npos) << error.what();
  }
  EXPECT_EQ(deployment.incumbent(), start);
  // What it knows is of use when it begins again and all devices are there.
  Deployment again(model, start, quick(0));
  again.restore("state", deployment.save());
  EXPECT_EQ(again.next(), start);
}

TEST(ADeployment, DecidesAsIfNothingHadHappenedWhenItTakesUpAState) {
  // Every 13 runs the process is killed and another one takes up its state; a drift and a loss lie between.
  const auto served = [](int runs_per_life) {
    HiddenSystem before(1, 0.02, 1), after(2, 0.02, 2);
    const Placement start = good_placement(before.world);
    auto deployment = std::make_unique<Deployment>(before.world, start, quick(3));
    for (int run = 0; run < 170; ++run) {
      serve_without(*deployment, run < 60 ? before : after, run >= 110 && run < 140 ? 1 : 99, 1);
      if (runs_per_life == 0 || run % runs_per_life != 0) continue;
      const std::string state = deployment->save(run);
      deployment = std::make_unique<Deployment>(before.world, start, quick(3));
      EXPECT_EQ(deployment->restore("state", state), static_cast<std::uint64_t>(run));
    }
    return deployment->save();
  };
  const std::string undisturbed = served(0);
  EXPECT_EQ(served(13), undisturbed);
  for (const char* event : {"answers again", "does not answer", "times as long as modelled", "takes over"})
    EXPECT_NE(undisturbed.find(event), std::string::npos) << event;
}

TEST(ADeployment, RefusesAStateThatIsDamagedOrOfAnotherProblem) {
  HiddenSystem system(1, 0.02, 1);
  const Placement start = good_placement(system.world);
  Deployment deployment(system.world, start, quick(0));
  serve(deployment, system, 20);
  const std::string state = deployment.save();
  const auto refusal = [&](const Problem& problem, const std::string& text) -> std::string {
    Deployment other(problem, start, quick(0));
    try {
      other.restore("my.state", text);
    } catch (const InputError& error) {
      EXPECT_EQ(other.runs(), 0U);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal(system.world, state), "accepted");
  EXPECT_NE(refusal(system.world, state.substr(0, state.size() / 2)).find("my.state: found no whole state"),
            std::string::npos);
  EXPECT_NE(refusal(system.world, "{}").find("found no whole state"), std::string::npos);
  std::string damaged = state;
  const std::size_t digit = damaged.find("\"runs\":20") + 7;
  damaged[digit] = '3';
  EXPECT_NE(refusal(system.world, damaged).find("checksum is wrong"), std::string::npos);
  const HiddenSystem slower(1.5, 0.02, 1);
  EXPECT_NE(refusal(slower.world, state).find("state of another problem"), std::string::npos);
}

TEST(ADeployment, NoticesADriftWithinAFewRuns) {
  HiddenSystem before(1, 0.02, 1), after(2, 0.02, 2);
  Deployment deployment(before.world, good_placement(before.world), quick(0));
  serve(deployment, before, 50);
  serve(deployment, after, 5);  // three of the last five runs are enough for their median
  EXPECT_EQ(count(deployment, Kind::drift), 1U);
}

TEST(ADeployment, ComesBackToADeviceThatRecovers) {
  HiddenSystem healthy(1, 0.02, 1), slow(4, 0.02, 2);
  const Placement start = good_placement(healthy.world);
  Deployment deployment(healthy.world, start, quick(0));
  serve(deployment, healthy, 40);
  serve(deployment, slow, 100);
  const Seconds avoiding = test::makespan(healthy.world, {deployment.incumbent()});
  serve(deployment, healthy, 400);
  EXPECT_LT(test::makespan(healthy.world, {deployment.incumbent()}), 0.95 * avoiding);
}

TEST(ADeployment, ExploresNoMoreThanItsShare) {
  // A poor incumbent, so that there is always something to try.
  HiddenSystem system(1, 0.02, 1);
  const Placement poor{std::vector<DeviceId>(60, 0), {}, {}};
  Deployment deployment(system.world, poor, quick(0));
  for (int i = 0; i < 300; ++i) {
    serve(deployment, system, 1);
    const double bursts = static_cast<double>(count(deployment, Kind::drift));
    EXPECT_LE(static_cast<double>(deployment.explored()),
              0.1 * static_cast<double>(deployment.runs()) + 1 + bursts * Deployment::kBurst);
  }
  EXPECT_GE(deployment.changes(), 1U);
  EXPECT_GT(deployment.explored(), 5U);
}

TEST(ADeployment, ServesOnlyTheIncumbentIfItMayNotExplore) {
  HiddenSystem before(1, 0.02, 1), after(2, 0.02, 2);
  DeploymentOptions options = quick(0);
  options.explore_share = 0;
  Deployment deployment(before.world, good_placement(before.world), options);
  serve(deployment, before, 50);
  serve(deployment, after, 50);
  EXPECT_EQ(deployment.explored(), 0U);
  EXPECT_EQ(deployment.changes(), 0U);
}

TEST(ADeployment, DropsAChallengerAfterOneRunThatIsTooSlow) {
  // A system that punishes whatever is not the first incumbent.
  HiddenSystem system(1, 0.01, 1);
  const Placement poor{std::vector<DeviceId>(60, 0), {}, {}};
  Deployment deployment(system.world, poor, quick(0));
  std::size_t challengers = 0;
  for (int i = 0; i < 300; ++i) {
    Timeline timeline = system.run(deployment.next());
    const bool challenger = !(deployment.next().device_of_op == poor.device_of_op);
    timeline.makespan = challenger ? 1.5 : 1;
    challengers += challenger ? 1 : 0;
    deployment.observe(timeline.makespan, timeline);
  }
  EXPECT_EQ(deployment.changes(), 0U);
  EXPECT_GE(challengers, 1U);
  EXPECT_EQ(count(deployment, Kind::dropped), challengers) << "one run each";
}

// All placements take the same time: any change is for no reason. With error 0.01 per challenger and about three of
// them in 300 runs (the wait between searches doubles), 3 % of the deployments may change.
TEST(ADeployment, SeldomChangesForNoise) {
  constexpr int kSeeds = 100, kMostChanged = 5;
  const Placement poor{std::vector<DeviceId>(60, 0), {}, {}};
  int changed = 0;
  std::size_t challenges = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    HiddenSystem system(1, 0.02, 1);
    DeploymentOptions options = quick(static_cast<std::uint64_t>(seed));
    options.search_evaluations = 100;
    Deployment deployment(system.world, poor, options);
    Rng rng(static_cast<std::uint64_t>(seed));
    for (int i = 0; i < 300; ++i) {
      Timeline timeline = system.run(deployment.next());
      timeline.makespan = std::exp(0.05 * rng.normal());
      deployment.observe(timeline.makespan, timeline);
    }
    changed += deployment.changes() > 0 ? 1 : 0;
    challenges += count(deployment, Kind::challenge);
  }
  RecordProperty("changed", changed);
  RecordProperty("challenges", static_cast<int>(challenges));
  EXPECT_LE(changed, kMostChanged);
  EXPECT_GE(challenges, static_cast<std::size_t>(2 * kSeeds)) << "there was nothing to be wrong about";
}

TEST(ADeployment, MakesTheSameDecisionsForTheSameSeedAndMeasurements) {
  const auto decisions = [] {
    HiddenSystem before(1, 0.02, 1), after(2, 0.02, 2);
    Deployment deployment(before.world, good_placement(before.world), quick(3));
    serve(deployment, before, 40);
    serve(deployment, after, 60);
    std::vector<std::string> texts;
    for (const DeploymentEvent& event : deployment.events()) texts.push_back(std::to_string(event.run) + event.text);
    return texts;
  };
  const auto first = decisions();
  EXPECT_EQ(first, decisions());
  EXPECT_FALSE(first.empty());
}

TEST(ADeployment, KeepsPinsInItsChallengers) {
  const Machine machine = machine_with(0, 1);
  Problem model(served_graph(), machine, {}, {{7, 3}});
  Placement poor{std::vector<DeviceId>(60, 0), {}, {}};
  poor.device_of_op[7] = 3;
  HiddenSystem system(1, 0.02, 1);
  Deployment deployment(model, poor, quick(0));
  serve(deployment, system, 200);
  EXPECT_GE(deployment.changes(), 1U);
  EXPECT_EQ(deployment.incumbent().device_of_op[7], 3U);
}

TEST(TimeRatiosTest, AreWeightedMediansOfMeasuredOverModelled) {
  // Device 0: ops of 1, 1 and 8 that took 3, 3 and 16: ratios 3, 3, 2; by weight the 8 decides. Device 1 is unused: as
  // the others.
  Problem world(test::graph_of({1, 1, 8}, {}), test::machine_of({"any", "any"}));
  TimeRatios ratios(world);
  EXPECT_EQ(ratios.ratio(0), 1);
  Timeline timeline;
  timeline.executions = {{0, 0, 0, 0, 0, 3}, {1, 0, 0, 3, 3, 6}, {2, 0, 0, 6, 6, 22}};
  ratios.observe(timeline);
  EXPECT_DOUBLE_EQ(ratios.ratio(0), 2);
  EXPECT_DOUBLE_EQ(ratios.ratio(1), 2);
  const Machine corrected = ratios.corrected();
  EXPECT_DOUBLE_EQ(corrected.device(0).slowdown, 2);
}

TEST(TimeRatiosTest, CallItADriftWhenMostOfTheLastFiveRunsDiffer) {
  Problem world(test::graph_of({1}, {}), test::machine_of({"any", "any"}));
  TimeRatios ratios(world);
  const auto run = [&](Seconds time) {
    Timeline timeline;
    timeline.executions = {{0, 0, 0, 0, 0, time}};
    ratios.observe(timeline);
  };
  for (int i = 0; i < 20; ++i) run(1);
  run(2), run(2);
  EXPECT_FALSE(ratios.drifted());  // may be bad luck
  run(2);
  ASSERT_TRUE(ratios.drifted());
  EXPECT_EQ(ratios.drifted()->src, 0U);
  EXPECT_FALSE(ratios.drifted()->link());
  ratios.settle();
  EXPECT_FALSE(ratios.drifted());
  EXPECT_DOUBLE_EQ(ratios.ratio(0), 2);
}

// One transfer of a tensor that takes 2 from device 0 to 1, as a run shows it.
Timeline one_transfer(Seconds queued, Seconds start, Seconds end) {
  Timeline timeline;
  timeline.transfers = {{0, 0, 1, 0, queued, start, end}};
  return timeline;
}

TEST(TimeRatiosTest, OfALinkLeaveOutTheTimeThatTransfersQueue) {
  // The transfer queues from 1 to 7 and moves from 7 to 15: 8 where 2 are modelled, ratio 4. After one run the link is
  // believed for 1 / (1 + 0.5) of the logarithm, and nobody else says anything: its own guess stands for the class.
  const Problem world(test::graph_of({1, 1}, {{0, 1, 2.0}}), test::machine_of({"any", "any"}));
  TimeRatios ratios(world);
  ratios.observe(one_transfer(1, 7, 15));
  EXPECT_DOUBLE_EQ(ratios.ratio(0, 1), 4);
  // The link back was never seen: as the only other of its class.
  EXPECT_DOUBLE_EQ(ratios.ratio(1, 0), 4);
  const Problem corrected = world.on(ratios.corrected());
  EXPECT_DOUBLE_EQ(corrected.costs().transfer_time(0, 0, 1), 8);
  EXPECT_DOUBLE_EQ(corrected.costs().op_time(0, 0), 1);
}

TEST(TimeRatiosTest, OfALinkHardlyGoByTransfersThatAreShortBesideTheRun) {
  // A transfer of 2 that takes 22 in a run of 8000: (22 + 80) / (2 + 80), not 11.
  const Problem world(test::graph_of({1, 1}, {{0, 1, 2.0}}), test::machine_of({"any", "any"}));
  TimeRatios ratios(world);
  Timeline timeline = one_transfer(0, 0, 22);
  timeline.makespan = 8000;
  ratios.observe(timeline);
  EXPECT_DOUBLE_EQ(ratios.ratio(0, 1), 102.0 / 82);
}

TEST(TimeRatiosTest, NoticeALinkThatBecomesSlow) {
  const Problem world(test::graph_of({1, 1}, {{0, 1, 2.0}}), test::machine_of({"any", "any"}));
  TimeRatios ratios(world);
  for (int i = 0; i < 20; ++i) ratios.observe(one_transfer(0, 0, 2));
  ratios.observe(one_transfer(0, 0, 8)), ratios.observe(one_transfer(0, 0, 8));
  EXPECT_FALSE(ratios.drifted());
  ratios.observe(one_transfer(0, 0, 8));
  const auto found = ratios.drifted();
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->link());
  EXPECT_EQ(found->src, 0U);
  EXPECT_EQ(found->dst, 1U);
  EXPECT_DOUBLE_EQ(found->recent, 4);
  EXPECT_DOUBLE_EQ(found->before, 1);
}

TEST(TimeRatiosTest, KnowKindsThatTakeLongerThanOthersOnADevice) {
  // Four products of 10 that take 20 and two sums of 10 that take 10: half of the weight lies at or below the ratio 2,
  // which is the device's; a sum takes half of that. A kind that was seen n times is believed for n / (n + 2).
  GraphBuilder builder("test");
  for (int i = 0; i < 6; ++i) builder.add_op({.kind = i < 4 ? "product" : "sum", .flops = 10});
  const Machine machine("one", {{.name = "d", .type = "any", .rates = {{.flops_per_second = 1}}}}, {{}});
  const Problem world(std::move(builder).build(), machine);
  TimeRatios ratios(world);
  Timeline timeline;
  for (OpId op = 0; op < 6; ++op) timeline.executions.push_back({op, 0, 0, 0, 0, op < 4 ? 20.0 : 10.0});
  constexpr int kRuns = 18;
  for (int i = 0; i < kRuns; ++i) ratios.observe(timeline);
  EXPECT_DOUBLE_EQ(ratios.ratio(0), 2);
  EXPECT_DOUBLE_EQ(ratios.kind_ratio(0, 0), 1);
  EXPECT_NEAR(ratios.kind_ratio(5, 0), std::pow(0.5, 0.9), 1e-12);  // 18 / 20 of the logarithm
  const Problem corrected = world.on(ratios.corrected());
  EXPECT_DOUBLE_EQ(corrected.costs().op_time(0, 0), 20);
  EXPECT_NEAR(corrected.costs().op_time(5, 0), 20 * std::pow(0.5, 0.9), 1e-9);
}

TEST(TimeRatiosTest, CallNothingADriftThatIsUsual) {
  // Alternates between 0.8 and 1.25: medians of five are at the one or the other, log(1.25) = 0.22 from the average,
  // which is more than log(1.15) but less than twice the usual 0.22.
  Problem world(test::graph_of({1}, {}), test::machine_of({"any", "any"}));
  TimeRatios ratios(world);
  for (int i = 0; i < 60; ++i) {
    Timeline timeline;
    timeline.executions = {{0, 0, 0, 0, 0, i % 2 == 0 ? 0.8 : 1.25}};
    ratios.observe(timeline);
    EXPECT_FALSE(ratios.drifted()) << i;
  }
}

}  // namespace
}  // namespace doppler
