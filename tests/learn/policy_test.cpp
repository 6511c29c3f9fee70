// What every policy promises (learn/policy.h), for each architecture that needs no libtorch, and what trainers know of
// one: a policy that is nothing like DOPPLER goes through all of them.

#include "doppler/learn/policy.h"

#include "doppler/base/error.h"
#include "doppler/learn/doppler/gnn.h"
#include "doppler/learn/policy_table.h"
#include "doppler/learn/train/generated_tasks.h"
#include "doppler/learn/train/held_out.h"
#include "doppler/learn/train/trainer.h"
#include "doppler/learn/train/zero_shot.h"
#include "tests/learn/support.h"
#include "tests/sim/allocation_count.h"

namespace doppler::test {
namespace {

class EveryPolicy : public testing::TestWithParam<const char*> {
 protected:
  EveryPolicy() : world_(mixed_world()), policy_(make_policy(GetParam(), Rng(1))) {}
  std::vector<float> gradients() {
    const std::vector<float> result(policy_->gradients().begin(), policy_->gradients().end());
    std::ranges::fill(policy_->gradients(), 0.0F);
    return result;
  }

  std::unique_ptr<Problem> world_;
  std::unique_ptr<Policy> policy_;
};

INSTANTIATE_TEST_SUITE_P(Table, EveryPolicy,
                         testing::Values("gnn width 32 layers 2 messages episode",
                                         "gnn width 32 layers 2 messages step", "joint width 32 layers 2 ready 4",
                                         "placeto width 32 rounds 2 messages episode",
                                         "placeto width 32 rounds 2 messages step"),
                         [](const auto& test) {
                           const std::string text = test.param;
                           return text.substr(0, text.find(' ')) + "_" + text.substr(text.rfind(' ') + 1);
                         });

TEST_P(EveryPolicy, SaysHowToMakeItAgain) {
  EXPECT_EQ(policy_->architecture(), GetParam());
  EXPECT_EQ(architecture_of("test", policy_->architecture()).policy, policy_->name());
  EXPECT_FALSE(architecture_of("test", policy_->architecture()).features().empty());
}

TEST_P(EveryPolicy, BuildsLegalPlacementsThatFollowFromTheSeed) {
  policy_->begin(policy_->encode(*world_));
  Episode first, second(false);
  Rng a(3), b(3);
  for (const Deciding deciding : {Deciding::sampled, Deciding::greedy, Deciding::sampled}) {
    policy_->act(first, deciding, a);
    policy_->act(second, deciding, b);
    EXPECT_EQ(first.device_of_op, second.device_of_op);
    EXPECT_EQ(first.order, second.order);
    verify(*world_, first.placement());  // throws
    EXPECT_LT(first.log_probability, 0);
    EXPECT_GT(first.entropy, 0);
  }
}

TEST(ASharpenedPolicy, SamplesNearerToItsFavouritesAndLearnsAsBefore) {
  // To the power of 30 few ops of this small graph go anywhere but to their favourites; an episode that is learned from
  // does not listen.
  for (const char* architecture : {"gnn width 32 layers 2 messages episode", "gnn width 32 layers 2 messages step",
                                   "joint width 32 layers 2 ready 4"}) {
    const auto world = mixed_world();
    const auto policy = make_policy(architecture, Rng(1));
    for (float& parameter : policy->parameters()) parameter *= 2;  // A fresh policy hardly has favourites.
    policy->begin(policy->encode(*world));
    const auto agreeing = [&](bool differentiable) {
      Episode greedy(false), sampled(differentiable);
      Rng rng(4);
      policy->act(greedy, Deciding::greedy, rng);
      std::size_t count = 0;
      for (int i = 0; i < 50; ++i) {
        policy->act(sampled, Deciding::sampled, rng);
        count += sampled.device_of_op == greedy.device_of_op && sampled.order == greedy.order ? 1 : 0;
      }
      return count;
    };
    const std::size_t plain = agreeing(false), learned_from = agreeing(true);
    policy->sharpen(30);
    EXPECT_GT(agreeing(false), plain + 5) << architecture;  // Of 50 whole placements with their orders.
    EXPECT_EQ(agreeing(true), learned_from) << architecture;
  }
}

TEST_P(EveryPolicy, FollowsItsOwnDecisionsWithTheSameProbabilityAndGradient) {
  policy_->begin(policy_->encode(*world_));
  Episode acted, followed;
  Rng rng(3);
  policy_->act(acted, Deciding::sampled, rng);
  policy_->follow(followed, acted.order, acted.device_of_op);
  EXPECT_EQ(acted.log_probability, followed.log_probability);
  EXPECT_EQ(acted.entropy, followed.entropy);
  policy_->backward(acted, {.decisions = 1, .entropy = 0.5});
  policy_->finish();
  const std::vector<float> of_acted = gradients();
  policy_->begin(policy_->encode(*world_));
  policy_->follow(followed, acted.order, acted.device_of_op);
  policy_->backward(followed, {.decisions = 1, .entropy = 0.5});
  policy_->finish();
  EXPECT_EQ(of_acted, gradients());
}

TEST_P(EveryPolicy, HasTheGradientOfItsLogProbability) {
  // Along the gradient itself the slope is its squared norm. Single precision leaves about three digits of a
  // difference.
  policy_->begin(policy_->encode(*world_));
  Episode episode;
  Rng rng(3);
  policy_->act(episode, Deciding::sampled, rng);
  const std::vector<OpId> order = episode.order;
  const std::vector<DeviceId> devices = episode.device_of_op;
  policy_->backward(episode, {.decisions = 1});
  policy_->finish();
  const std::vector<float> gradient = gradients();
  double square = 0;
  for (const float g : gradient) square += static_cast<double>(g) * static_cast<double>(g);
  const std::vector<float> kept(policy_->parameters().begin(), policy_->parameters().end());
  const auto loss_at = [&](double step) {
    for (std::size_t i = 0; i < kept.size(); ++i)
      policy_->parameters()[i] = kept[i] + static_cast<float>(step * static_cast<double>(gradient[i]));
    policy_->begin(policy_->encode(*world_));
    policy_->follow(episode, order, devices);
    return -episode.log_probability;
  };
  const double step = 1e-3 / std::sqrt(square);
  EXPECT_NEAR((loss_at(step) - loss_at(-step)) / (2 * step), square, 0.02 * square);
}

TEST_P(EveryPolicy, AgreesWithATeacherPartByPart) {
  policy_->begin(policy_->encode(*world_));
  Episode episode;
  Rng rng(3);
  if (!policy_->knows(TeacherRule::heft)) {
    EXPECT_THROW(policy_->imitate(episode, TeacherRule::heft, rng), InternalError);
    return;
  }
  policy_->imitate(episode, TeacherRule::heft, rng);
  ASSERT_EQ(episode.agreement.size(), policy_->parts().size());
  for (const double share : episode.agreement) EXPECT_TRUE(share >= 0 && share <= 1) << share;
}

TEST_P(EveryPolicy, AllocatesNothingAfterTheFirstUpdate) {
  const auto encoded = policy_->encode(*world_);
  std::vector<Episode> batch(3);
  Rng rng(3);
  const auto update = [&] {
    policy_->begin(encoded);
    for (Episode& episode : batch) policy_->act(episode, Deciding::sampled, rng);
    for (Episode& episode : batch) policy_->backward(episode, {.decisions = 1, .entropy = 0.1});
    if (policy_->knows(TeacherRule::critical_path)) {
      policy_->imitate(batch[0], TeacherRule::critical_path, rng);
      policy_->backward(batch[0], {.decisions = 1});
    }
    policy_->finish();
  };
  update();
  const std::size_t before = allocation_count();
  for (int i = 0; i < 5; ++i) update();
  EXPECT_EQ(allocation_count() - before, 0U);
}

TEST_P(EveryPolicy, LeavesOutOnlyWhatItOffers) {
  for (const std::string_view part : policy_->optional_parts()) policy_->leave_out(part);
  EXPECT_TRUE(std::ranges::equal(policy_->left_out(), policy_->optional_parts()));
  EXPECT_THROW(policy_->leave_out("everything"), InputError);
}

TEST(APolicyWithoutSomePart, IsBlindToItAndStaysSo) {
  const auto policy = make_policy("gnn width 32 layers 2 messages episode", Rng(1));
  policy->leave_out("coparents");
  // The head, features × width and then width, is the end of the parameters.
  const auto weights_of = [&](std::string_view name) {
    const auto at = static_cast<std::size_t>(std::ranges::find(kDeviceFeatures, name) - kDeviceFeatures.begin());
    const auto head = policy->parameters().last((kDeviceFeatureCount + 1) * kBlock);
    return head.subspan(at * kBlock, kBlock);
  };
  const auto expect_blind = [&] {
    for (const std::string_view name : {"coparents_of_all", "coparents_of_placed"})
      for (const float weight : weights_of(name)) EXPECT_EQ(weight, 0) << name;
    for (const float weight : weights_of("siblings")) EXPECT_NE(weight, 0);
  };
  expect_blind();
  Task task("mixed", std::make_unique<ExactObjective>(*mixed_world()));
  Learner learner(*policy, {});
  for (std::uint64_t i = 0; i < 5; ++i) learner.reinforce(task, 1e-2, 0.01, Rng(i));
  expect_blind();
}

TEST(APolicyWithoutSomePart, DoesNotLearnFromThatPartsDecisions) {
  // With neither SEL nor PLC only the entropy is left to move anything.
  const auto policy = make_policy("gnn width 32 layers 2 messages episode", Rng(1));
  policy->leave_out("sel");
  policy->leave_out("plc");
  Task task("mixed", std::make_unique<ExactObjective>(*mixed_world()));
  Learner learner(*policy, {});
  EXPECT_EQ(learner.reinforce(task, 1e-3, 0, Rng(1)).gradient_norm, 0);
  EXPECT_GT(learner.reinforce(task, 1e-3, 0.1, Rng(1)).gradient_norm, 0);
}

TEST(ThePolicyTable, RefusesInOneLine) {
  const auto refusal = [](const char* description) -> std::string {
    try {
      make_policy(description, Rng(1));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("net width 32"),
            "policy: found architecture 'net width 32'; required one of gnn, joint, paper, hsdag, hsdag-published, "
            "hsdag+, gdp, rnn, placeto (docs/learning.md)");
  EXPECT_EQ(refusal("joint width 32 layers 2"),
            "policy: found architecture 'joint width 32 layers 2'; required 'joint width W layers L ready K', W a "
            "multiple of 32 up to 512, L up to 16, K up to 1024");
  EXPECT_NE(refusal("hsdag+ width 32 clusters kmeans"), "");
}

TEST(ThePolicyTable, NamesWhatItHas) {
  EXPECT_EQ(policy_names(), (std::vector<std::string_view>{"doppler", "hsdag", "hsdag+", "gdp", "rnn", "placeto"}));
  for (const std::string_view name : policy_names()) EXPECT_NO_THROW(check_policy_name("--policy", name));
  try {
    check_policy_name("--policy", "nobody");
    FAIL() << "required an InputError";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "--policy: found 'nobody'; required one of doppler, hsdag, hsdag+, gdp, rnn, placeto");
  }
}

// One logit per device, the same for every op; knows no teacher and has no opinion on the order of ops.
class Favourites final : public Policy {
 public:
  explicit Favourites(std::size_t devices) : logits_(devices, 0.0F), gradients_(devices, 0.0F) {}
  std::string_view name() const override { return "favourites"; }
  std::string architecture() const override { return "favourites"; }
  std::span<float> parameters() override { return logits_; }
  std::span<const float> parameters() const override { return logits_; }
  std::span<float> gradients() override { return gradients_; }

  void check_trainable(const std::string&, const Problem&) const override {}
  std::shared_ptr<const EncodedProblem> encode(const Problem& problem) const override {
    auto result = std::make_shared<Size>();
    result->ops = problem.op_count();
    return result;
  }
  void begin(std::shared_ptr<const EncodedProblem> problem) override {
    ops_ = dynamic_cast<const Size&>(*problem).ops;
    double total = 0;
    for (const float logit : logits_) total += std::exp(static_cast<double>(logit));
    probability_.clear();
    for (const float logit : logits_) probability_.push_back(std::exp(static_cast<double>(logit)) / total);
  }
  void act(Episode& episode, Deciding deciding, Rng& rng) override {
    episode.device_of_op.clear();
    for (OpId op = 0; op < ops_; ++op) {
      double left = rng.uniform();
      DeviceId device = 0;
      while (deciding == Deciding::sampled && device + 1 < probability_.size() && left >= probability_[device])
        left -= probability_[device++];
      if (deciding == Deciding::greedy)
        device = static_cast<DeviceId>(std::ranges::max_element(probability_) - probability_.begin());
      episode.device_of_op.push_back(device);
    }
    score(episode);
  }
  void follow(Episode& episode, std::span<const OpId>, std::span<const DeviceId> device_of_op) override {
    episode.device_of_op.assign(device_of_op.begin(), device_of_op.end());
    followed = episode.device_of_op;
    score(episode);
  }
  bool numbers_devices() const override { return by_number; }
  bool knows(TeacherRule) const override { return false; }
  void imitate(Episode&, TeacherRule, Rng&) override { FAIL() << "nobody may ask for this"; }
  void backward(Episode& episode, const EpisodeLoss& loss) override {
    for (const DeviceId chosen : episode.device_of_op)
      for (DeviceId device = 0; device < logits_.size(); ++device)
        gradients_[device] +=
            static_cast<float>(loss.decisions * (probability_[device] - (device == chosen ? 1.0 : 0.0)));
  }
  void finish() override {}
  std::span<const std::string_view> parts() const override { return {}; }
  std::span<const std::string_view> optional_parts() const override { return {}; }
  void leave_out(std::string_view part) override { throw InputError(std::string(part)); }
  std::span<const std::string_view> left_out() const override { return {}; }

  bool by_number = false;
  std::vector<DeviceId> followed;  // What it was told to do last.

 private:
  struct Size final : EncodedProblem {
    OpId ops = 0;
  };
  void score(Episode& episode) const {
    episode.log_probability = 0;
    for (const DeviceId device : episode.device_of_op) episode.log_probability += std::log(probability_[device]);
  }
  OpId ops_ = 0;
  std::vector<float> logits_, gradients_;
  std::vector<double> probability_;
};

// A chain, so that everything belongs on the one device that is fast.
std::unique_ptr<Task> chain_task(Discipline discipline) {
  GraphBuilder builder("chain");
  for (OpId op = 0; op < 12; ++op) {
    OpSpec spec;
    spec.explicit_times = {{"slow", 4.0}, {"fast", 1.0}};
    builder.add_op(std::move(spec));
    if (op > 0) builder.add_consumer(builder.add_tensor(op - 1, 0, 1.0), op);
  }
  return make_task(
      "chain", Problem(std::move(builder).build(), machine_of({"slow", "fast", "slow"}), {.discipline = discipline}),
      false);
}

TEST(ATrainer, TrainsAPolicyThatIsNothingLikeDoppler) {
  for (const Discipline discipline : {Discipline::fifo, Discipline::priority}) {
    Favourites policy(3);
    TrainingOptions options;
    options.stages = {Stage::simulation};
    options.updates = 200;
    options.rate = options.last_rate = 3e-2;
    options.expert_share = 0;
    Trainer trainer(policy, options);
    Task& task = trainer.add(chain_task(discipline));
    double first = 0, last = 0;
    while (!trainer.finished()) {
      const double mean = trainer.step().result.mean;
      if (first == 0) first = mean;
      last = mean;
    }
    EXPECT_EQ(task.best_makespan(), 12);  // 12 ops of 1 s on the fast device
    EXPECT_LT(last, 0.5 * first);
    MethodOptions unlimited;
    unlimited.budget = Budget::unlimited();
    const Proposal answer = zero_shot(policy, task.problem(), task.objective(), 4, unlimited);
    EXPECT_EQ(answer.placement.device_of_op, std::vector<DeviceId>(12, 1));
    std::vector<std::unique_ptr<Task>> held_out;
    held_out.push_back(chain_task(discipline));
    EXPECT_EQ(HeldOut(std::move(held_out)).score(policy), 1);  // The heuristics know the fast device too.
  }
}

TEST(ALearner, RenumbersEqualDevicesOfAnEliteForAPolicyThatKnowsThemByNumber) {
  // Everything is on the first slow device, and the policy is sure of the other one, which is as good: 48 s both.
  for (const bool by_number : {false, true}) {
    Favourites policy(3);
    policy.by_number = by_number;
    policy.parameters()[2] = 30;
    const auto task = chain_task(Discipline::fifo);
    task->evaluate(Placement{.device_of_op = std::vector<DeviceId>(12, 0)}, "somebody");
    Learner learner(policy, {.batch = 4});
    learner.reinforce(*task, 1e-3, 0, Rng(1));
    EXPECT_EQ(policy.followed, std::vector<DeviceId>(12, by_number ? 2 : 0));
    EXPECT_EQ(task->finder(), "somebody");
    // The fast device is not equal to any: an elite there stays there.
    task->evaluate(Placement{.device_of_op = std::vector<DeviceId>(12, 1)}, Task::kPolicy);
    EXPECT_EQ(task->finder(), Task::kPolicy);
    for (std::uint64_t seed = 2; policy.followed[0] != 1 && seed < 50; ++seed)
      learner.reinforce(*task, 0, 0, Rng(seed));
    EXPECT_EQ(policy.followed, std::vector<DeviceId>(12, 1));
  }
}

TEST(ATrainer, LetsAPolicyLearnFromItsOwnPlacementsAloneWithoutSearch) {
  // Memory is limited, but everything fits: with expert iteration classical placements come first, without it none
  // does.
  for (const double share : {0.0, 0.2}) {
    const auto policy = make_policy("gnn width 32 layers 2 messages episode", Rng(5));
    TrainingOptions options;
    options.stages = {Stage::simulation};
    options.updates = 1;
    options.expert_share = share;
    Trainer trainer(*policy, options);
    Task& task = trainer.add(make_task(
        "layers",
        Problem(generate_layered({.ops = 40, .width = 5, .degree = 2, .seed = 3, .costs = {}}), load_machine("p100x4")),
        false));
    ASSERT_TRUE(task.problem().memory_limited());
    trainer.step();
    EXPECT_EQ(task.finder() == Task::kPolicy, share == 0) << task.finder();
  }
}

TEST(ATrainer, BeginsEveryGeneratedTaskWithWhatCheapMethodsFind) {
  // A policy that knows nothing finds nothing as good as HEFT within one update of 16 placements of 200 ops.
  for (const double share : {0.0, 0.2}) {
    const auto policy = make_policy("gnn width 32 layers 2 messages episode", Rng(5));
    TrainingOptions options;
    options.stages = {Stage::simulation};
    options.updates = 4;
    options.expert_share = share;
    options.visits_per_generated = 2;
    Trainer trainer(*policy, options);
    trainer.add_generated(
        [](Rng rng) { return generate_task({.fewest_ops = 200, .most_ops = 201, .fewest_devices = 4}, rng); }, 1);
    for (const bool is_new : {true, false, true, false}) {
      trainer.step();
      if (!is_new) continue;
      EXPECT_EQ(trainer.task(0).finder() == Task::kPolicy, share == 0) << trainer.task(0).finder();
    }
  }
}

TEST(ATrainer, RefusesATeacherThatThePolicyCannotImitate) {
  Favourites policy(3);
  TrainingOptions options;
  options.updates = 10;
  EXPECT_THROW(Trainer(policy, options), InputError);
  options.teacher = Teacher::best;
  options.learner.batch = 4;
  Trainer trainer(policy, options);
  trainer.add(chain_task(Discipline::fifo));
  while (!trainer.finished()) trainer.step();
}

}  // namespace
}  // namespace doppler::test
