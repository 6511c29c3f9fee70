// What holds of every architecture of the table, whichever policy it is of. A new one is picked up by itself.

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/learn/policy_table.h"
#include "doppler/learn/train/trainer.h"
#include "tests/learn/support.h"
#include "tests/support/sanitized.h"

namespace doppler::test {
namespace {

constexpr int kEpisodes = fewer_if_sanitized(300);

class EveryArchitecture : public testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<Policy> fresh(std::uint64_t seed = 1) { return make_policy(GetParam(), Rng(seed)); }

  // Samples episodes of an untrained policy and hands the devices of each to `check`.
  template <typename Check>
  static void sample(const Problem& problem, Check check) {
    const auto policy = fresh();
    Episode episode;
    Rng rng(2);
    const auto encoded = policy->encode(problem);
    for (int i = 0; i < kEpisodes && !HasFailure(); ++i) {
      if (i % 16 == 0) policy->begin(encoded);
      policy->act(episode, Deciding::sampled, rng);
      check(episode);
    }
  }
};

TEST_P(EveryArchitecture, IsMadeOfItsDescription) {
  const auto policy = fresh();
  EXPECT_EQ(policy->architecture(), GetParam());
  EXPECT_EQ(architecture_of("test", GetParam()).policy, policy->name());
  EXPECT_EQ(policy->parameters().size(), policy->gradients().size());
  for (const float gradient : policy->gradients()) EXPECT_EQ(gradient, 0);
}

TEST_P(EveryArchitecture, PutsOpsOnlyWhereTheyMayBe) {
  // A pin, two kinds of devices of which one cannot run op 2, and a group.
  const auto world = mixed_world({{5, 1}, {0, 2}});
  std::vector<std::vector<int>> visits(world->op_count(), std::vector<int>(3, 0));
  sample(*world, [&](const Episode& episode) {
    const Placement placement = episode.placement();
    verify(*world, placement);  // throws
    EXPECT_LE(episode.log_probability, 0);
    for (OpId op = 0; op < world->op_count(); ++op) ++visits[op][placement.device_of_op[op]];
  });
  EXPECT_EQ(visits[5][1], kEpisodes);
  EXPECT_EQ(visits[0][2], kEpisodes);
  EXPECT_EQ(visits[2][2], 0);
}

TEST_P(EveryArchitecture, KeepsOpsOffFullDevices) {
  // Five ops with 40 bytes of parameters each on three devices of 100: two to a device, and no third.
  GraphBuilder builder("heavy");
  for (OpId op = 0; op < 5; ++op) builder.add_op({.parameter_bytes = 40, .explicit_times = {{"*", 1}}});
  const Problem world(std::move(builder).build(), machine_of({"a", "a", "a"}, 100));
  sample(world, [&](const Episode& episode) {
    std::vector<int> held(3, 0);
    for (const DeviceId device : episode.device_of_op) EXPECT_LE(++held[device], 2);
  });
}

TEST_P(EveryArchitecture, TakesTheLeastFullDeviceWhenAllAreFull) {
  // Each op alone is larger than any device; device 1 lacks least for whichever is placed first.
  GraphBuilder builder("heavy");
  for (OpId op = 0; op < 3; ++op) builder.add_op({.parameter_bytes = 1000, .explicit_times = {{"*", 1}}});
  std::vector<Device> devices(3);
  for (DeviceId i = 0; i < 3; ++i) {
    devices[i].name = "d" + std::to_string(i);
    devices[i].type = "a";
    devices[i].memory = i == 1 ? 900 : 100;
  }
  const Problem world(std::move(builder).build(), Machine("small", devices, std::vector<Link>(9)));
  sample(world, [&](const Episode& episode) {
    EXPECT_NE(std::find(episode.device_of_op.begin(), episode.device_of_op.end(), 1U), episode.device_of_op.end());
  });
}

// Twelve ops in a chain, so that everything belongs on the one device that is fast.
Problem chain() {
  GraphBuilder builder("chain");
  for (OpId op = 0; op < 12; ++op) {
    builder.add_op({.explicit_times = {{"slow", 4.0}, {"fast", 1.0}}});
    if (op > 0) builder.add_consumer(builder.add_tensor(op - 1, 0, 1.0), op);
  }
  return Problem(std::move(builder).build(), machine_of({"slow", "fast", "slow"}));
}

// Forty ops in layers of five.
Problem layers(const Rules& rules = {}) {
  return Problem(generate_layered({.ops = 40, .width = 5, .degree = 2, .seed = 3, .costs = {}}), load_machine("p100x4"),
                 rules);
}

TrainingOptions simulated(std::uint64_t updates) {
  TrainingOptions options;
  options.stages = {Stage::simulation};
  options.updates = updates;
  options.seed = 7;
  options.expert_share = 0;
  return options;
}

TEST_P(EveryArchitecture, LearnsWhereAChainBelongs) {
  const auto policy = fresh();
  TrainingOptions options = simulated(fewer_if_sanitized(300));
  options.rate = 1e-2;
  options.learner.self_imitation = 0;  // by its own experience
  Trainer trainer(*policy, options);
  Task& task = trainer.add(make_task("chain", chain(), false));
  double first = 0, last = 0;
  while (!trainer.finished()) {
    const double mean = trainer.step().result.mean;
    if (first == 0) first = mean;
    last = mean;
  }
  if (kSanitized) return;
  EXPECT_EQ(task.best_makespan(), 12);  // 12 ops of 1 s on the fast device
  // An architecture that can only put everything on one device at random takes 48 s in two of three episodes. One that
  // begins with a good placement must keep it.
  EXPECT_LT(last, std::max(0.75 * first, 1.25 * 12));
}

TEST_P(EveryArchitecture, ResumedFromACheckpointDoesWhatItWouldHaveDone) {
  // Both stages, with expert iteration, on a task that reads priorities and one that does not.
  struct Session {
    explicit Session(std::uint64_t seed) : policy(fresh(seed)), trainer(*policy, options()) {
      for (const Discipline discipline : {Discipline::fifo, Discipline::priority})
        trainer.add(make_task(std::string(to_string(discipline)), layers({.discipline = discipline}), false));
    }
    static TrainingOptions options() {
      TrainingOptions options;
      options.updates = 12;
      options.seed = 7;
      options.learner.batch = 4;
      options.teacher = Teacher::best;
      return options;
    }
    void run(int count) {
      for (int i = 0; i < count; ++i) trainer.step();
    }
    std::unique_ptr<Policy> policy;
    Trainer trainer;
  };
  Session whole(5), first(5), second(9);
  whole.run(12);
  first.run(5);
  const std::string saved = policy_to_bytes(first.trainer.save());
  first.run(3);  // This is lost by the kill.
  second.trainer.restore("saved", parse_policy("saved", saved));
  second.run(7);
  EXPECT_TRUE(std::ranges::equal(second.policy->parameters(), whole.policy->parameters()));
  EXPECT_FALSE(std::ranges::equal(second.policy->parameters(), first.policy->parameters()));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(second.trainer.task(i).best(), whole.trainer.task(i).best());
    EXPECT_EQ(second.trainer.task(i).finder(), whole.trainer.task(i).finder());
  }
}

TEST_P(EveryArchitecture, RaisesTheProbabilityOfWhatItFollows) {
  const auto policy = fresh();
  const Problem problem = layers();
  Task task("layers", std::make_unique<ExactObjective>(problem));
  Placement target;
  for (OpId op = 0; op < problem.op_count(); ++op) target.device_of_op.push_back(op % 5 % 3);
  target.priority = line_up(problem.graph(), default_priority(problem.costs()));
  task.evaluate(target, Task::kPolicy);
  Learner learner(*policy, {});
  const double before = learner.follow_best(task, 3e-3).log_probability;
  double after = before;
  for (int i = 0; i < 60; ++i) after = learner.follow_best(task, 3e-3).log_probability;
  EXPECT_GT(after, before);
}

TEST_P(EveryArchitecture, RefusesTooLargeAProblemBeforeItBegins) {
  GraphBuilder builder("wide");
  for (OpId op = 0; op < 70'000; ++op) builder.add_op({.explicit_times = {{"*", 1}}});
  const Problem problem(std::move(builder).build(), uniform_machine(8));
  const auto policy = fresh();
  if (policy->name() == "rnn")  // It keeps groups of ops, whose number is fixed.
    EXPECT_NO_THROW(policy->check_trainable("wide", problem));
  else
    EXPECT_THROW(policy->check_trainable("wide", problem), InputError);
}

std::vector<std::string> plain_architectures() {
  std::vector<std::string> result;
  for (const Architecture& architecture : architectures())
    if (architecture.name != "paper") result.emplace_back(architecture.usual);  // It needs libtorch: paper_test.cpp.
  // What differs from the usual in more than its sizes.
  for (const char* const other : {"placeto width 32 rounds 2 messages step", "hsdag width 32 steps 16 clusters metis",
                                  "hsdag+ width 32 clusters metis groups published"})
    result.emplace_back(other);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryArchitecture, testing::ValuesIn(plain_architectures()),
                         [](const testing::TestParamInfo<std::string>& which) {
                           std::string name;
                           for (const char c : which.param) name += std::isalnum(c) != 0 ? c : c == '+' ? 'P' : '_';
                           return name;
                         });

}  // namespace
}  // namespace doppler::test
