#include "doppler/sim/measured_oracle.h"

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "tests/place/world.h"

namespace doppler {
namespace {

// Says what it is told to, in turn.
class ScriptedSystem final : public Oracle {
 public:
  explicit ScriptedSystem(std::vector<Seconds> times) : times_(std::move(times)) {}
  Seconds evaluate(const Placement&) override { return times_.at(runs++); }
  std::size_t runs = 0;

 private:
  std::vector<Seconds> times_;
};

// Four independent ops of 1 on two devices: two each take 2, three on one take 3, all on one take 4.
struct Fixture {
  explicit Fixture(Discipline discipline = Discipline::fifo)
      : world(test::graph_of({1, 1, 1, 1}, {}), test::machine_of({"any", "any"}), test::rules_of(discipline)) {}
  test::World world;
  Placement even{{0, 0, 1, 1}, {}, {}}, mirrored{{1, 1, 0, 0}, {}, {}}, uneven{{0, 0, 0, 1}, {}, {}};
};

TEST(AMeasuredOracle, TakesTheMedianOfItsRepeatsAndRemembersIt) {
  Fixture f;
  ScriptedSystem system({10, 10, 10, 9, 30, 8});
  MeasuredOracle oracle(system, f.world.problem);
  oracle.set_incumbent(f.even);
  EXPECT_EQ(oracle.incumbent_time(), 10);
  EXPECT_EQ(oracle.evaluate(f.mirrored), 9);  // of 9, 30, 8
  EXPECT_EQ(oracle.evaluate(f.mirrored), 9);
  EXPECT_EQ(oracle.evaluate(f.even), 10);
  EXPECT_EQ(system.runs, 6U);
  EXPECT_EQ(oracle.runs(), 6U);
  EXPECT_EQ(oracle.reused(), 2U);
}

TEST(AMeasuredOracle, NeverRunsWhatIsPredictedToBeMuchSlowerThanTheIncumbent) {
  // Predicted 3 against the incumbent's 2, which took 10: 3 * 10 / 2 = 15, and 1.5 times the incumbent is too much.
  Fixture f;
  ScriptedSystem system({10, 10, 10});
  MeasuredOracle oracle(system, f.world.problem, {.repeats = 3, .max_slowdown = 1.2});
  oracle.set_incumbent(f.even);
  EXPECT_EQ(oracle.evaluate(f.uneven), 15);
  EXPECT_EQ(system.runs, 3U);
  EXPECT_EQ(oracle.refused(), 1U);
  EXPECT_TRUE(oracle.would_refuse(f.uneven));
}

TEST(AMeasuredOracle, RunsASlowerPlacementIfThatIsAllowed) {
  Fixture f;
  ScriptedSystem system({10, 10, 10, 14, 14, 14});
  MeasuredOracle oracle(system, f.world.problem, {.repeats = 3, .max_slowdown = 1.6});
  oracle.set_incumbent(f.even);
  EXPECT_EQ(oracle.evaluate(f.uneven), 14);
  EXPECT_EQ(oracle.refused(), 0U);
}

TEST(AMeasuredOracle, StopsRepeatingAfterARunThatIsMuchSlower) {
  Fixture f;
  ScriptedSystem system({10, 10, 10, 13});
  MeasuredOracle oracle(system, f.world.problem, {.repeats = 3, .max_slowdown = 1.2});
  oracle.set_incumbent(f.even);
  EXPECT_EQ(oracle.evaluate(f.mirrored), 13);
  EXPECT_EQ(oracle.evaluate(f.mirrored), 13);
  EXPECT_EQ(system.runs, 4U);
}

TEST(AMeasuredOracle, RefusesWhatDoesNotFitInMemory) {
  // Three parameters of 1 byte do not fit into 2; with max_slowdown 9 the prediction is no reason to refuse.
  GraphBuilder builder("memory");
  for (int i = 0; i < 4; ++i) {
    OpSpec op;
    op.explicit_times["*"] = 1;
    op.parameter_bytes = 1;
    builder.add_op(std::move(op));
  }
  test::World world(std::move(builder).build(), test::machine_of({"any", "any"}, 2), Rules{});
  ScriptedSystem system({10, 10, 10});
  MeasuredOracle oracle(system, world.problem, {.repeats = 3, .max_slowdown = 9});
  oracle.set_incumbent({{0, 0, 1, 1}, {}, {}});
  EXPECT_EQ(oracle.evaluate({{0, 0, 0, 1}, {}, {}}), 15);
  EXPECT_EQ(oracle.refused(), 1U);
}

TEST(AMeasuredOracle, TellsPrioritiesApartOnlyIfTheRulesReadThem) {
  Fixture fifo, ranked(Discipline::priority);
  ScriptedSystem system({});
  Placement first = fifo.even, second = fifo.even;
  first.priority = {0, 1, 2, 3};
  second.priority = {3, 2, 1, 0};
  const MeasuredOracle any(system, fifo.world.problem), by_rank(system, ranked.world.problem);
  EXPECT_EQ(any.key(first), any.key(second));
  EXPECT_NE(by_rank.key(first), by_rank.key(second));
  EXPECT_NE(any.key(fifo.even), any.key(fifo.mirrored));
}

TEST(AMeasuredOracle, GoesOnWithWhatAnEarlierOneMeasured) {
  Fixture f;
  ScriptedSystem before({10, 10, 10, 9, 9, 9}), after({8});
  std::vector<std::pair<std::uint64_t, Seconds>> kept;
  MeasuredOracle first(before, f.world.problem);
  first.on_run = [&](std::uint64_t key, Seconds time) { kept.emplace_back(key, time); };
  first.set_incumbent(f.even);
  first.evaluate(f.mirrored);
  ASSERT_EQ(kept.size(), 6U);
  kept.pop_back();  // killed before the last run was kept

  MeasuredOracle second(after, f.world.problem);
  for (const auto& [key, time] : kept) second.recall(key, time);
  second.set_incumbent(f.even);
  EXPECT_EQ(second.evaluate(f.mirrored), 9);  // of 9, 9 and the one run that was missing, 8
  EXPECT_EQ(after.runs, 1U);
  EXPECT_EQ(second.runs(), 6U);
}

TEST(AMeasuredOracle, NeedsAnIncumbent) {
  Fixture f;
  ScriptedSystem system({});
  MeasuredOracle oracle(system, f.world.problem);
  EXPECT_THROW(oracle.evaluate(f.even), InternalError);
}

}  // namespace
}  // namespace doppler
