#include "doppler/sim/measured_objective.h"

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
  std::vector<std::pair<std::uint64_t, Seconds>> kept;
  MeasuredObjective first(before, f.world);
  first.on_run([&](std::uint64_t key, Seconds time) { kept.emplace_back(key, time); });
  first.set_incumbent(f.even);
  first.value(f.mirrored);
  ASSERT_EQ(kept.size(), 6U);
  kept.pop_back();  // killed before the last run was kept

  MeasuredObjective second(after, f.world);
  for (const auto& [key, time] : kept) second.recall(key, time);
  second.set_incumbent(f.even);
  EXPECT_EQ(second.value(f.mirrored), 9);  // of 9, 9 and the one run that was missing, 8
  EXPECT_EQ(after->runs, 1U);
  EXPECT_EQ(second.runs(), 6U);
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
