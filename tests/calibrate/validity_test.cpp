#include "doppler/calibrate/validity.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/calibrate/rounds.h"
#include "doppler/graph/generate.h"
#include "doppler/objective.h"

namespace doppler {
namespace {

constexpr double kValidityRounding = 1e-12;

Problem layered_problem() {
  return Problem(generate_layered({.ops = 40, .width = 5, .degree = 2, .seed = 1, .costs = {}}),
                 load_machine("p100x4").with_jitter(0));
}

// A system that runs exactly as simulated, but so many times as long, and interrupts a run if it is told to.
class ScaledSystem final : public Executor {
 public:
  ScaledSystem(Problem problem, double factor) : objective_(std::move(problem)), factor_(factor) {}
  std::string_view name() const override { return "scaled"; }
  const Problem& problem() const override { return objective_.problem(); }
  Timeline run(const Placement& placement) override {
    if (runs++ == interrupted_at) throw RunCancelled("run: interrupted");
    Timeline timeline = objective_.simulate(placement);
    timeline.makespan *= factor_;
    return timeline;
  }

  std::uint64_t runs = 0, interrupted_at = std::numeric_limits<std::uint64_t>::max();

 private:
  ExactObjective objective_;
  double factor_;
};

PlacementSources random_sources(const Problem& problem) {
  const auto draw = [&problem](std::uint64_t seed) {
    Rng rng(mix(seed, 1));  // others than varied_placements() draws itself
    return random_placement(problem, rng);
  };
  return {{{"some method", draw}}, draw};
}

TEST(AValidity, FollowsFromItsSamples) {
  // Simulated 1, 2, 4 and measured 2, 2.5, 5: simulated / measured - 1 is -1/2, -1/5, -1/5, so that the error is 0.3
  // and the bias -0.3. Both have the same order: Spearman 1. Pearson: deviations from the means 7/3 and 19/6 are (-4,
  // -1, 5) / 3 and (-7, -4, 11) / 6, their product (28 + 4 + 55) / 18, over the root of (42 / 9) (186 / 36).
  const Validity result = judge_validity("g", {{"a", 1, 2, {2}}, {"b", 2, 2.5, {2.5}}, {"c", 4, 5, {5}}});
  EXPECT_NEAR(result.mean_error, 0.3, kValidityRounding);
  EXPECT_NEAR(result.bias, -0.3, kValidityRounding);
  EXPECT_NEAR(result.spearman, 1, kValidityRounding);
  EXPECT_NEAR(result.pearson, 87.0 / 18 / std::sqrt(42.0 / 9 * 186.0 / 36), kValidityRounding);
  EXPECT_EQ(result.repeatability, std::nullopt);  // each ran once
}

TEST(AValidity, IsRepeatableIfBothHalvesOfTheRunsAgree) {
  const Validity result = judge_validity("g", {{"a", 1, 1, {1, 1}}, {"b", 2, 2, {2, 2}}, {"c", 3, 3, {3, 3}}});
  ASSERT_TRUE(result.repeatability);
  EXPECT_NEAR(*result.repeatability, 1, kValidityRounding);
}

TEST(AValidity, OfASystemThatTakesTwiceAsLongIsABiasAndNothingElse) {
  const Problem problem = layered_problem();
  ScaledSystem system(problem, 2);
  const Validity result =
      measure_validity("g", system, varied_placements(problem, random_sources(problem), 10, 0), {.repeat = 2});
  ASSERT_EQ(result.samples.size(), 10U);
  EXPECT_EQ(system.runs, 30U);  // one round before the two that count
  EXPECT_NEAR(result.pearson, 1, kValidityRounding);
  EXPECT_NEAR(result.bias, -0.5, kValidityRounding);
  EXPECT_NEAR(*result.repeatability, 1, kValidityRounding);
}

TEST(AValidity, KeepsWhatWasMeasuredBeforeAnInterruption) {
  const Problem problem = layered_problem();
  ScaledSystem system(problem, 1);
  system.interrupted_at = 14;  // in the first round that counts, after four of its ten runs
  std::vector<VariedPlacement> placements = varied_placements(problem, random_sources(problem), 10, 0);
  EXPECT_EQ(measure_validity("g", system, placements, {}).samples.size(), 4U);
  system.runs = 0;
  system.interrupted_at = 11;  // after one: nothing can be compared
  EXPECT_TRUE(measure_validity("g", system, placements, {}).samples.empty());
}

TEST(VariedPlacements, DifferInTheirMakespanAndFollowFromTheSeed) {
  const Problem problem = layered_problem();
  ExactObjective objective(problem);
  const std::vector<VariedPlacement> placements = varied_placements(problem, random_sources(problem), 20, 7);
  ASSERT_EQ(placements.size(), 20U);
  std::set<Seconds> makespans;
  std::set<std::string> origins;
  for (const VariedPlacement& varied : placements) {
    verify(problem, varied.placement);
    makespans.insert(objective.value(varied.placement));
    origins.insert(varied.origin);
  }
  EXPECT_EQ(makespans.size(), 20U);
  EXPECT_EQ(origins, (std::set<std::string>{"random", "some method", "policy", "policy, shaken"}));
  const std::vector<VariedPlacement> again = varied_placements(problem, random_sources(problem), 20, 7);
  for (std::size_t i = 0; i < again.size(); ++i) EXPECT_EQ(again[i].placement, placements[i].placement);
}

TEST(ARound, RunsEveryPlacementOnceAndOneThatDoesNotFitNeverAgain) {
  std::vector<TimedPlacement> placements(4);
  std::vector<int> runs(4, 0);
  Rng rng(1);
  for (int round = 0; round < 3; ++round)
    run_round(placements, rng, [&](TimedPlacement& timed) {
      const std::size_t index = static_cast<std::size_t>(&timed - placements.data());
      ++runs[index];
      if (index == 2) throw InfeasibleError("too large");
    });
  EXPECT_EQ(runs, (std::vector<int>{3, 3, 1, 3}));
  EXPECT_FALSE(placements[2].fits);
}

}  // namespace
}  // namespace doppler
