#include "doppler/sim/measured_objective.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "tests/support/problems.h"

namespace doppler {
namespace {

// Says what it is told to, in turn.
class ScriptedSystem final : public Executor {
 public:
  ScriptedSystem(const Problem& problem, std::vector<Seconds> times) : problem_(problem), times_(std::move(times)) {}
  std::string_view name() const override { return "scripted"; }
  const Problem& problem() const override { return problem_; }
  Timeline run(const Placement&) override {
    Timeline timeline;
    timeline.makespan = times_.at(runs++);
    return timeline;
  }
  std::size_t runs = 0;

 private:
  Problem problem_;
  std::vector<Seconds> times_;
};
std::shared_ptr<ScriptedSystem> scripted(const Problem& problem, std::vector<Seconds> times) {
  return std::make_shared<ScriptedSystem>(problem, std::move(times));
}

// Four independent ops of 1 on two devices: two each take 2, three on one take 3, all on one take 4.
struct Fixture {
  explicit Fixture(Discipline discipline = Discipline::fifo)
      : world(test::graph_of({1, 1, 1, 1}, {}), test::machine_of({"any", "any"}), test::rules_of(discipline)) {}
  Problem world;
  Placement even{{0, 0, 1, 1}, {}, {}}, mirrored{{1, 1, 0, 0}, {}, {}}, uneven{{0, 0, 0, 1}, {}, {}};
};

TEST(AMeasuredObjective, TakesTheMedianOfItsRepeatsAndRemembersIt) {
  Fixture f;
  const auto system = scripted(f.world, {10, 10, 10, 9, 30, 8});
  MeasuredObjective objective(system, f.world);
  objective.set_incumbent(f.even);
  EXPECT_EQ(objective.incumbent_time(), 10);
  EXPECT_EQ(objective.value(f.mirrored), 9);  // of 9, 30, 8
  EXPECT_EQ(objective.value(f.mirrored), 9);
  EXPECT_EQ(objective.value(f.even), 10);
  EXPECT_EQ(system->runs, 6U);
  EXPECT_EQ(objective.runs(), 6U);
  EXPECT_EQ(objective.reused(), 2U);
}

TEST(AMeasuredObjective, NeverRunsWhatIsPredictedToBeMuchSlowerThanTheIncumbent) {
  // Predicted 3 against the incumbent's 2, which took 10: 3 * 10 / 2 = 15, and 1.5 times the incumbent is too much.
  Fixture f;
  const auto system = scripted(f.world, {10, 10, 10});
  MeasuredObjective objective(system, f.world, {.repeats = 3, .max_slowdown = 1.2});
  objective.set_incumbent(f.even);
  EXPECT_EQ(objective.value(f.uneven), 15);
  EXPECT_EQ(system->runs, 3U);
  EXPECT_EQ(objective.refused(), 1U);
  EXPECT_TRUE(objective.would_refuse(f.uneven));
}

TEST(AMeasuredObjective, RunsASlowerPlacementIfThatIsAllowed) {
  Fixture f;
  const auto system = scripted(f.world, {10, 10, 10, 14, 14, 14});
  MeasuredObjective objective(system, f.world, {.repeats = 3, .max_slowdown = 1.6});
  objective.set_incumbent(f.even);
  EXPECT_EQ(objective.value(f.uneven), 14);
  EXPECT_EQ(objective.refused(), 0U);
}

TEST(AMeasuredObjective, StopsRepeatingAfterARunThatIsMuchSlower) {
  Fixture f;
  const auto system = scripted(f.world, {10, 10, 10, 13});
  MeasuredObjective objective(system, f.world, {.repeats = 3, .max_slowdown = 1.2});
  objective.set_incumbent(f.even);
  EXPECT_EQ(objective.value(f.mirrored), 13);
  EXPECT_EQ(objective.value(f.mirrored), 13);
  EXPECT_EQ(system->runs, 4U);
}

TEST(AMeasuredObjective, RefusesWhatDoesNotFitInMemory) {
  // Three parameters of 1 byte do not fit into 2; with max_slowdown 9 the prediction is no reason to refuse.
  GraphBuilder builder("memory");
  for (int i = 0; i < 4; ++i) {
    OpSpec op;
    op.explicit_times["*"] = 1;
    op.parameter_bytes = 1;
    builder.add_op(std::move(op));
  }
  Problem world(std::move(builder).build(), test::machine_of({"any", "any"}, 2), Rules{});
  const auto system = scripted(world, {10, 10, 10});
  MeasuredObjective objective(system, world, {.repeats = 3, .max_slowdown = 9});
  objective.set_incumbent({{0, 0, 1, 1}, {}, {}});
  EXPECT_EQ(objective.value(Placement{{0, 0, 0, 1}, {}, {}}), 15);
  EXPECT_EQ(objective.refused(), 1U);
}

TEST(AMeasuredObjective, TellsPrioritiesApartOnlyIfTheRulesReadThem) {
  Fixture fifo, ranked(Discipline::priority);
  const auto system = scripted(fifo.world, {});
  Placement first = fifo.even, second = fifo.even;
  first.priority = {0, 1, 2, 3};
  second.priority = {3, 2, 1, 0};
  const MeasuredObjective any(system, fifo.world), by_rank(system, ranked.world);
  EXPECT_EQ(any.key(first), any.key(second));
  EXPECT_NE(by_rank.key(first), by_rank.key(second));
  EXPECT_NE(any.key(fifo.even), any.key(fifo.mirrored));
}

TEST(AMeasuredObjective, GoesOnWithWhatAnEarlierOneMeasured) {
  Fixture f;
  const auto before = scripted(f.world, {10, 10, 10, 9, 9, 9}), after = scripted(f.world, {8});
  std::vector<std::pair<Placement, Seconds>> kept;
  MeasuredObjective first(before, f.world);
  first.on_run([&](const Placement& placement, Seconds time) { kept.emplace_back(placement, time); });
  first.set_incumbent(f.even);
  first.value(f.mirrored);
  ASSERT_EQ(kept.size(), 6U);
  kept.pop_back();  // killed before the last run was kept

  MeasuredObjective second(after, f.world);
  for (const auto& [placement, time] : kept) second.recall(placement, time);
  second.set_incumbent(f.even);
  EXPECT_EQ(second.value(f.mirrored), 9);  // of 9, 9 and the one run that was missing, 8
  EXPECT_EQ(after->runs, 1U);
  EXPECT_EQ(second.runs(), 6U);
}

TEST(AMeasuredObjective, KnowsOnlyWhatWasMeasuredBeforeItsCheckpoint) {
  // Three runs of the incumbent lie before the checkpoint and one of another after it, which takes the place of a run
  // only when that is asked for again.
  Fixture f;
  const auto system = scripted(f.world, {});
  for (const bool settled_first : {true, false}) {
    MeasuredObjective objective(system, f.world);
    if (settled_first) objective.settle(3);
    for (int i = 0; i < 3; ++i) objective.recall(f.even, 10);
    objective.recall(f.mirrored, 12);
    if (!settled_first) objective.settle(3);
    EXPECT_EQ(objective.runs(), 4U);
    EXPECT_EQ(objective.used(), 3U);
    EXPECT_TRUE(objective.knows(f.even));
    EXPECT_FALSE(objective.knows(f.mirrored));
    objective.set_incumbent(f.even);
    EXPECT_EQ(objective.value(f.mirrored), 12);
    EXPECT_EQ(objective.used(), 4U);
  }
}

TEST(AMeasuredObjective, RunsAPlacementAgainOnlyIfItIsPromising) {
  // 5 % more than the fastest known, 10, is 10.5: a first run of 10.4 is repeated, one of 10.6 is not.
  Fixture f;
  const auto system = scripted(f.world, {10, 10, 10, 10.4, 10.8, 10.9, 10.6});
  MeasuredObjective objective(system, f.world, {.repeats = 3, .max_slowdown = 1.6});
  objective.set_incumbent(f.even);
  EXPECT_EQ(objective.value(f.mirrored), 10.8);
  EXPECT_EQ(objective.value(f.uneven), 10.6);
  EXPECT_EQ(system->runs, 7U);
}

// Predicts the number of ops on device 0, and more.
class CountingObjective final : public Objective {
 public:
  explicit CountingObjective(const Problem& problem) : Objective(problem) {}
  std::string_view name() const override { return "counting"; }
  Seconds value(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t>) override {
    return static_cast<Seconds>(std::count(device_of_op.begin(), device_of_op.end(), 0U)) + 1;
  }
  using Objective::value;
  std::unique_ptr<Objective> another() const override { return std::make_unique<CountingObjective>(problem()); }
};

TEST(AMeasuredObjective, RunsOnlyWhatItsPredictorSaysMayBeFasterAndNoMoreThanItMay) {
  // The incumbent has two ops on device 0, predicted 3, and takes 12: predictions count four times. One op there is
  // predicted 8, three 16, none 4. Nothing was wrong so far, so that there is no doubt.
  Fixture f;
  const auto system = scripted(f.world, {12, 12, 12, 9, 9, 9});
  MeasuredObjective objective(system, f.world, {.repeats = 3, .max_slowdown = 9});
  objective.set_incumbent(f.even);
  objective.predict_by(std::make_shared<CountingObjective>(f.world), 1);
  EXPECT_EQ(objective.value(f.uneven), 16);
  EXPECT_EQ(objective.value(Placement{{0, 1, 1, 1}, {}, {}}), 9) << "predicted 8: it is run";
  EXPECT_EQ(objective.value(Placement{{1, 1, 1, 1}, {}, {}}), 9) << "predicted 4, but it may not, and is not the best";
  EXPECT_EQ(system->runs, 6U);
  EXPECT_EQ(objective.refused(), 2U);
}

TEST(AMeasuredObjective, FindsASlowDeviceByMakespansAlone) {
  // Device 0 takes twice as long as modelled: k ops on it and 4 - k on the other take max(2k, 4 - k).
  Fixture f;
  const Placement four{{0, 0, 0, 0}, {}, {}}, one{{0, 1, 1, 1}, {}, {}}, none{{1, 1, 1, 1}, {}, {}},
      other_one{{1, 0, 1, 1}, {}, {}};
  MeasuredObjective objective(scripted(f.world, {}), f.world);
  const std::vector<std::pair<Placement, Seconds>> runs = {{f.even, 4}, {f.uneven, 6}, {four, 8},
                                                           {one, 3},    {none, 4},     {other_one, 3}};
  objective.settle(runs.size());
  for (const auto& [placement, time] : runs) {
    EXPECT_FALSE(objective.ratios());
    objective.recall(placement, time);
  }
  const auto ratios = objective.ratios();
  ASSERT_TRUE(ratios);
  EXPECT_NEAR(ratios->ratio(0) / ratios->ratio(1), 2, 0.2);
}

TEST(AMeasuredObjective, SharesWhatWasMeasuredWithOthersOfItsKind) {
  // A search asks another one on every thread; the system runs each placement once for all of them.
  Fixture f;
  const auto system = scripted(f.world, {10, 10, 10, 9, 9, 9});
  MeasuredObjective objective(system, f.world);
  objective.set_incumbent(f.even);
  const std::unique_ptr<Objective> one = objective.another(), other = objective.another();
  EXPECT_EQ(one->value(f.mirrored), 9);
  EXPECT_EQ(other->value(f.mirrored), 9);
  EXPECT_EQ(objective.runs(), 6U);
  EXPECT_EQ(objective.reused(), 1U);
}

TEST(AMeasuredObjective, NeedsAnIncumbent) {
  Fixture f;
  const auto system = scripted(f.world, {});
  MeasuredObjective objective(system, f.world);
  EXPECT_THROW(objective.value(f.even), InternalError);
}

}  // namespace
}  // namespace doppler
