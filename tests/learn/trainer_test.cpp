#include "doppler/learn/train/trainer.h"

#include <ctime>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/graph/generate.h"
#include "doppler/learn/policy_table.h"
#include "doppler/learn/train/generated_tasks.h"
#include "doppler/place/list/critical_path.h"
#include "tests/learn/published.h"
#include "tests/support/sanitized.h"

namespace doppler {
namespace {

std::unique_ptr<Task> small_task(std::string name = "small", Discipline discipline = Discipline::fifo) {
  return make_task(std::move(name),
                   Problem(generate_layered({.ops = 40, .width = 5, .degree = 2, .seed = 3, .costs = {}}),
                           load_machine("p100x4").with_jitter(0), Rules{.discipline = discipline}),
                   true);
}

GeneratedCosts quiet_costs() {
  GeneratedCosts costs;
  costs.communication_ratio = 0.3;
  return costs;
}

TrainingOptions updates(std::uint64_t count) {
  TrainingOptions options;
  options.updates = count;
  options.seed = 7;
  options.learner.batch = 4;
  return options;
}

std::unique_ptr<Policy> fresh_policy() { return make_policy("gnn width 32 layers 2 messages episode", Rng(5)); }

// A trainer with two graphs and two generated ones, so that everything that a checkpoint holds is in use.
struct TrainingSession {
  explicit TrainingSession(std::uint64_t count) : policy(fresh_policy()), trainer(*policy, make(count)) {
    trainer.add(small_task("fifo"));
    trainer.add(small_task("priority", Discipline::priority), 2);
    GeneratedTaskOptions tiny;
    tiny.fewest_ops = 10;
    tiny.most_ops = 30;
    tiny.most_devices = 4;
    trainer.add_generated([tiny](Rng rng) { return generate_task(tiny, rng); }, 2);
  }
  static TrainingOptions make(std::uint64_t count) {
    TrainingOptions options = updates(count);
    options.visits_per_generated = 3;
    return options;
  }
  void run(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) trainer.step();
  }
  std::vector<float> parameters() const { return {policy->parameters().begin(), policy->parameters().end()}; }

  std::unique_ptr<Policy> policy;
  Trainer trainer;
};

TEST(ATrainer, GivesTheSameParametersForTheSameSeed) {
  TrainingSession a(60), b(60);
  a.run(60);
  b.run(60);
  EXPECT_EQ(a.parameters(), b.parameters());
  EXPECT_EQ(a.trainer.task(0).best(), b.trainer.task(0).best());
  EXPECT_TRUE(a.trainer.finished());
}

TEST(ATrainer, ResumedFromACheckpointDoesWhatItWouldHaveDone) {
  TrainingSession whole(80), first(80);
  whole.run(80);
  first.run(40);
  const std::string saved = policy_to_bytes(first.trainer.save());
  first.run(7);  // This is lost by the kill.

  TrainingSession second(80);
  second.trainer.restore("saved", parse_policy("saved", saved));
  EXPECT_EQ(second.trainer.updates(), 40U);
  second.run(40);
  EXPECT_EQ(second.parameters(), whole.parameters());
  for (std::size_t i = 0; i < whole.trainer.task_count(); ++i) {
    EXPECT_EQ(second.trainer.task(i).name(), whole.trainer.task(i).name());
    EXPECT_EQ(second.trainer.task(i).best(), whole.trainer.task(i).best());
    EXPECT_EQ(second.trainer.task(i).evaluations(), whole.trainer.task(i).evaluations());
  }
}

// Asks to stop at the evaluation of a given number.
class Interrupting final : public Objective {
 public:
  Interrupting(const Problem& problem, std::uint64_t at, std::stop_source& user)
      : Objective(problem), exact_(problem), at_(at), user_(user) {}
  std::string_view name() const override { return "interrupting"; }
  Seconds value(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority) override {
    if (++count_ == at_) user_.request_stop();
    return exact_.value(device_of_op, priority);
  }
  std::unique_ptr<Objective> another() const override { return std::make_unique<Interrupting>(problem(), 0, user_); }
  bool exact() const override { return true; }
  std::uint64_t count() const { return count_; }

 private:
  ExactObjective exact_;
  std::uint64_t at_, count_ = 0;
  std::stop_source& user_;
};

// An update is long enough for looks at the clock: 4 episodes × 200 ops × 8 devices × 16 steps are more than 2^16.
struct InterruptedTraining {
  InterruptedTraining(const std::string& architecture, std::uint64_t at) : policy(make_policy(architecture, Rng(5))) {
    const Problem problem(generate_layered({.ops = 200, .width = 10, .degree = 2, .seed = 3, .costs = {}}),
                          load_machine("v100x8"));
    TrainingOptions options = updates(2);
    options.stages = {Stage::simulation};
    options.expert_share = 0.9;  // So that the search is interrupted too.
    options.stop = user.get_token();
    trainer = std::make_unique<Trainer>(*policy, options);
    auto interrupting = std::make_unique<Interrupting>(problem, at, user);
    objective = interrupting.get();
    trainer->add(std::make_unique<Task>("task", std::move(interrupting)));
  }
  // Everything that a checkpoint holds but the time.
  std::string state() const {
    const PolicyFile file = trainer->save();
    std::string text = file.training.substr(0, file.training.find("\"seconds\""));
    text += file.training.substr(file.training.find("\"tasks\""));
    for (const auto* numbers : {&file.parameters, &file.adam_mean, &file.adam_square})
      text.append(reinterpret_cast<const char*>(numbers->data()), numbers->size() * sizeof(float));
    return text;
  }

  std::stop_source user;
  std::unique_ptr<Policy> policy;
  Interrupting* objective = nullptr;
  std::unique_ptr<Trainer> trainer;
};

TEST(ATrainer, LeavesNoTraceOfAnUpdateThatIsInterruptedAndMakesItAgain) {
  // The last learns several times from an episode: a cut between two steps of the optimiser is no half of an update.
  for (const std::string_view policy : {"doppler", "gdp"}) {
    const std::string description(usual_architecture(policy));
    InterruptedTraining whole(description, 0);
    while (whole.trainer->advance()) {
    }
    std::uint64_t cuts = 0;
    const std::uint64_t evaluations = whole.objective->count();
    std::vector<std::uint64_t> moments = {3, evaluations / 2};
    if (!test::kSanitized) moments.insert(moments.end(), {4, evaluations - 10});
    for (const std::uint64_t at : moments) {
      SCOPED_TRACE(description + ", evaluation " + std::to_string(at));
      InterruptedTraining cut(description, at);
      std::string before = cut.state();
      while (cut.trainer->advance()) before = cut.state();
      if (!cut.trainer->finished()) {
        ++cuts;
        EXPECT_EQ(cut.state(), before);
      }
      cut.trainer->go_on({});
      while (cut.trainer->advance()) {
      }
      EXPECT_EQ(cut.state(), whole.state());
    }
    EXPECT_GE(cuts, moments.size() / 2) << description;
  }
}

TEST(ATrainer, EndsInTimeEvenWhereAnUpdateTakesLonger) {
  // An update takes seconds: 16 episodes of 20 000 ops on 8 devices.
  const auto policy = fresh_policy();
  TrainingOptions options;
  options.stages = {Stage::simulation};
  options.time = 0.2;
  Trainer trainer(*policy, options);
  const std::vector<float> before(policy->parameters().begin(), policy->parameters().end());
  trainer.add(std::make_unique<Task>(
      "large", std::make_unique<ExactObjective>(
                   Problem(generate_layered({.ops = 20'000, .width = 100, .degree = 2, .seed = 3, .costs = {}}),
                           load_machine("v100x8")))));
  const std::clock_t start = std::clock();
  EXPECT_FALSE(trainer.advance());
  // 5 % + 0.3 s, and twice that for builds and machines that are slower; an update takes ten times as long.
  EXPECT_LE(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, test::kSanitized ? 30 : 2 * (1.05 * 0.2 + 0.3));
  EXPECT_EQ(before, std::vector<float>(policy->parameters().begin(), policy->parameters().end()));
  EXPECT_EQ(trainer.episodes(), 0U);
}

TEST(ATrainer, RefusesACheckpointOfAnotherTraining) {
  TrainingSession session(10);
  session.run(3);
  const PolicyFile saved = session.trainer.save();
  const auto policy = fresh_policy();
  Trainer other(*policy, updates(10));
  other.add(small_task());
  EXPECT_THROW(other.restore("saved", saved), InputError);

  TrainingSession another(10);
  PolicyFile without_state = saved;
  without_state.training.clear();
  EXPECT_THROW(another.trainer.restore("saved", without_state), InputError);
  PolicyFile damaged = saved;
  damaged.training = "{\"seed\":7,\"tasks\":";
  EXPECT_THROW(another.trainer.restore("saved", damaged), InputError);
  // Printing it would need more stack than there is.
  damaged.training = R"({"tasks":[],"method":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_THROW(another.trainer.restore("saved", damaged), InputError);
  // A device that the machine does not have.
  PolicyFile wrong = saved;
  const std::size_t at = wrong.training.find("\"device_of_op\":[");
  ASSERT_NE(at, std::string::npos);
  wrong.training.insert(at + 16, "9");
  EXPECT_THROW(another.trainer.restore("saved", wrong), InputError);
}

TEST(ATrainer, RefusesACheckpointOfOtherRulesGraphsOrOptions) {
  const auto saved_by = [](std::unique_ptr<Task> task, const TrainingOptions& options) {
    const auto policy = fresh_policy();
    Trainer trainer(*policy, options);
    trainer.add(std::move(task));
    trainer.step();
    return trainer.save();
  };
  const PolicyFile saved = saved_by(small_task(), updates(10));
  const auto restoring = [&](std::unique_ptr<Task> task, const TrainingOptions& options) {
    const auto policy = fresh_policy();
    Trainer trainer(*policy, options);
    trainer.add(std::move(task));
    trainer.restore("saved", saved);
  };
  EXPECT_NO_THROW(restoring(small_task(), updates(20)));  // It may be longer.
  EXPECT_THROW(restoring(small_task("small", Discipline::ordered), updates(10)), InputError);
  // This is another graph with as many ops.
  EXPECT_THROW(
      restoring(make_task("small",
                          Problem(generate_layered({.ops = 40, .width = 5, .degree = 2, .seed = 4, .costs = {}}),
                                  load_machine("p100x4"), Rules{}),
                          false),
                updates(10)),
      InputError);
  TrainingOptions other = updates(10);
  other.stages = {Stage::imitation};
  EXPECT_THROW(restoring(small_task(), other), InputError);
}

TEST(ATrainer, RefusesATaskThatIsTooLargeForItsMemory) {
  const auto policy = fresh_policy();
  Trainer trainer(*policy, updates(10));
  EXPECT_THROW(
      trainer.add(make_task("large",
                            Problem(generate_layered({.ops = 2000, .width = 50, .degree = 2, .seed = 4, .costs = {}}),
                                    uniform_machine(300), Rules{}),
                            false)),
      InputError);
}

TEST(ATrainer, FindsPlacementsThatFitWhereMemoryIsTight) {
  // 24 independent ops with 10 bytes of parameters each; four devices of 70: at most 7 of them on one.
  GraphBuilder builder("tight");
  for (int i = 0; i < 24; ++i) {
    OpSpec op;
    op.explicit_times["*"] = 1;
    op.parameter_bytes = 10;
    builder.add_op(std::move(op));
  }
  const auto policy = fresh_policy();
  Trainer trainer(*policy, updates(20));
  const Task& task =
      trainer.add(make_task("tight", Problem(std::move(builder).build(), uniform_machine(4, 70), Rules{}), false));
  while (!trainer.finished()) trainer.step();
  ASSERT_FALSE(task.elites().empty());
  EXPECT_EQ(task.best_makespan(), 6);  // 24 over 4
}

TEST(ATrainer, VisitsTasksInProportionToTheirWeights) {
  const auto policy = fresh_policy();
  Trainer trainer(*policy, updates(1000));
  trainer.add(small_task("once"), 1);
  trainer.add(small_task("thrice"), 3);
  int thrice = 0;
  for (int i = 0; i < 40; ++i) thrice += trainer.step().task == "thrice" ? 1 : 0;
  EXPECT_EQ(thrice, 30);
}

TEST(ATrainer, ImitatesFirstAndSimulatesThen) {
  const auto policy = fresh_policy();
  TrainingOptions options = updates(20);
  options.imitation_share = 0.25;
  Trainer trainer(*policy, options);
  trainer.add(small_task());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(trainer.step().stage, i < 5 ? Stage::imitation : Stage::simulation) << i;
}

TEST(ATrainer, NeverForgetsTheBestPlacement) {
  const auto policy = fresh_policy();
  Trainer trainer(*policy, updates(100));
  Task& task = trainer.add(small_task("ordered", Discipline::ordered));
  Seconds before = Costs::kNever;
  while (!trainer.finished()) {
    const TrainingReport report = trainer.step();
    EXPECT_LE(report.best, before);
    before = report.best;
  }
  EXPECT_EQ(task.objective().value(task.best()), task.best_makespan());
  EXPECT_GE(task.best_makespan(), task.bound() * (1 - 1e-9));
}

// Agreement is counted on the states that the learner visits.
TEST(Imitation, ReachesNinetyFivePercentAgreementWithADeterministicTeacher) {
  const auto policy = fresh_policy();
  TrainingOptions options = updates(1000);
  options.stages = {Stage::imitation};
  options.learner.batch = 8;
  Trainer trainer(*policy, options);
  trainer.add(
      make_task("layered",
                Problem(generate_layered({.ops = 60, .width = 5, .degree = 2, .seed = 1, .costs = quiet_costs()}),
                        load_machine("p100x4").with_jitter(0), Rules{}),
                false));
  double sel = 0, plc = 0;
  constexpr int kUpdates = test::fewer_if_sanitized(1000);
  for (int i = 0; i < kUpdates; ++i) {
    const UpdateReport result = trainer.step().result;
    if (i < kUpdates - 20) continue;
    sel += result.agreement[0].share / 20;
    plc += result.agreement[1].share / 20;
  }
  if (test::kSanitized) return;
  EXPECT_GT(sel, 0.95);
  EXPECT_GT(plc, 0.95);
}

TEST(Imitation, OfTheBestClassicalPlacementRaisesItsProbability) {
  const auto policy = fresh_policy();
  TrainingOptions options = updates(300);
  options.stages = {Stage::imitation};
  options.teacher = Teacher::best;
  Trainer trainer(*policy, options);
  Task& task = trainer.add(small_task());
  const double before = trainer.step().result.log_probability;
  double after = 0;
  while (!trainer.finished()) after = trainer.step().result.log_probability;
  EXPECT_GT(after, 0.5 * before);  // per step
  EXPECT_FALSE(task.elites().empty());
}

// Bounded in updates, not in time, so that it gives the same answer on every machine. Expert iteration is off: this is
// what the policy learns by itself.
TEST(Simulation, ImprovesOnItsTeacherOnEveryPublishedGraph) {
  for (const test::PublishedGraph& published : test::published_graphs()) {
    SCOPED_TRACE(published.file);
    auto owned = test::published_task(published);
    if (!owned) GTEST_SKIP() << "no published graphs at " << DOPPLER_SHARED_DATA;
    MethodOptions teacher;
    teacher.budget = Budget::unlimited();
    const Seconds taught =
        owned->objective().value(critical_path(owned->problem(), owned->objective(), teacher).placement);
    const auto policy = fresh_policy();
    TrainingOptions options = updates(test::fewer_if_sanitized(150));
    options.learner.batch = 16;
    options.expert_share = 0;
    Trainer trainer(*policy, options);
    Task& task = trainer.add(std::move(owned));
    while (!trainer.finished()) trainer.step();
    if (!test::kSanitized) {
      EXPECT_LT(task.best_makespan(), taught);
    }
  }
}

}  // namespace
}  // namespace doppler
