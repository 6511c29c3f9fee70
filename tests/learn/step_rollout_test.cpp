#include "doppler/learn/doppler/step_rollout.h"

#include "doppler/learn/policy_table.h"
#include "doppler/learn/train/learner.h"
#include "tests/learn/support.h"

namespace doppler::test {
namespace {

constexpr LossWeights kWeights = {.sel = 0.7, .plc = 1.3, .entropy = 0.4};

// The rows of the first map that belong to the progress: where the parameters begin.
std::span<double> progress_weights(Network<double>& network) {
  return network.parameters().subspan(kNodeFeatureCount * kBlock, kProgressFeatures * kBlock);
}

class PassingMessagesAtEveryStep : public testing::Test {
 protected:
  PassingMessagesAtEveryStep() : world_(mixed_world()), input_(*world_), network_({.per_step = true}, Rng(1)) {
    Rng rng(2);
    for (double& parameter : network_.parameters()) parameter += rng.uniform(-0.1, 0.1);
  }
  std::unique_ptr<Problem> world_;
  PolicyInput input_;
  Gnn<double> network_;
};

// One embedding for all steps, of a network that ignores the progress.
TEST_F(PassingMessagesAtEveryStep, IsTheSameAsOnceIfTheProgressHasNoWeight) {
  std::ranges::fill(progress_weights(network_), 0.0);
  Embedding<double> embedding, gradient;
  const std::vector<double> no_progress(input_.op_count() * kProgressFeatures, 0.0);
  StepRollout<double> stepwise(network_, true);
  Rollout<double> once(network_.device_features(), network_.head_shape(), true);
  stepwise.bind(input_);
  once.bind(input_);
  Rng rng(3);
  stepwise.act({}, network_.head(), Deciding::sampled, rng);
  const std::vector<OpId> order(stepwise.order().begin(), stepwise.order().end());
  const std::vector<DeviceId> devices(stepwise.device_of_op().begin(), stepwise.device_of_op().end());
  network_.embed(input_, no_progress, embedding);
  once.follow(embedding, network_.head(), order, devices);

  EXPECT_NEAR(stepwise.log_probability(), once.log_probability(), 1e-10);
  EXPECT_NEAR(stepwise.entropy(), once.entropy(), 1e-10);
  for (std::size_t step = 0; step < input_.op_count(); ++step)
    for (DeviceId device = 0; device < input_.device_count(); ++device)
      EXPECT_NEAR(stepwise.probability(step, device), once.probability(step, device), 1e-12);

  const auto gradients = [&] {
    const std::vector<double> result(network_.gradients().begin(), network_.gradients().end());
    std::ranges::fill(network_.gradients(), 0.0);
    return result;
  };
  gradient.resize(input_.op_count(), kBlock);
  once.backward(network_.head(), kWeights, gradient, network_.head_gradient());
  network_.backward(gradient);
  const auto expected = gradients();
  stepwise.backward(network_.head(), kWeights, gradient, network_.head_gradient());
  const auto found = gradients();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool of_progress = i / kBlock >= kNodeFeatureCount && i / kBlock < kNodeFeatureCount + kProgressFeatures;
    if (!of_progress) {
      ASSERT_NEAR(found[i], expected[i], 1e-10) << i;
    }
  }
}

enum class Targets { sampled, followed, imitated };
class TheGradientOfEveryStep : public PassingMessagesAtEveryStep, public testing::WithParamInterface<Targets> {};

TEST_P(TheGradientOfEveryStep, IsRight) {
  StepRollout<double> rollout(network_, true);
  rollout.bind(input_);
  const LossWeights weights = {.sel = 1, .plc = 1, .entropy = 0.4};
  std::vector<OpId> order(input_.op_count());
  std::iota(order.begin(), order.end(), 0);
  const std::vector<DeviceId> devices = {0, 1, 1, 2, 0, 1, 1, 2, 1, 0};
  const auto episode = [&] {
    Rng rng(4);
    if (GetParam() == Targets::sampled) rollout.act({}, network_.head(), Deciding::sampled, rng);
    if (GetParam() == Targets::followed) rollout.follow({}, network_.head(), order, devices);
    if (GetParam() == Targets::imitated) rollout.imitate({}, network_.head(), TeacherRule::critical_path, rng);
    return -rollout.log_probability() - weights.entropy * rollout.entropy() * input_.op_count();
  };
  episode();
  Embedding<double> unused;
  rollout.backward(network_.head(), weights, unused, network_.head_gradient());
  const std::vector<double> gradient(network_.gradients().begin(), network_.gradients().end());
  for (std::size_t i = 0; i < gradient.size(); i += 61) {  // meets all blocks of 32 and more
    ASSERT_NEAR(gradient[i], difference(episode, network_.parameters()[i]), 1e-6) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(ForEveryTarget, TheGradientOfEveryStep,
                         testing::Values(Targets::sampled, Targets::followed, Targets::imitated),
                         [](const auto& param) {
                           return param.param == Targets::sampled    ? "Sampled"
                                  : param.param == Targets::followed ? "Followed"
                                                                     : "Imitated";
                         });

TEST(ALearner, PassesMessagesAtEveryStepForAPolicyThatWantsIt) {
  const auto world = mixed_world();
  Task task("mixed", std::make_unique<ExactObjective>(*world));
  const auto policy = make_policy("gnn width 32 layers 2 messages step", Rng(1));
  Learner learner(*policy, {});
  double first = 0, last = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const UpdateReport report = learner.imitate(task, TeacherRule::critical_path, 3e-3, Rng(i));
    (i < 5 ? first : last) += (i < 5 || i >= 55) ? report.agreement[1].share / 5 : 0;
  }
  EXPECT_GT(last, first);
  const UpdateReport report = learner.reinforce(task, 1e-3, 0.01, Rng(0));
  EXPECT_GT(report.gradient_norm, 0);
  EXPECT_LT(task.best_makespan(), Costs::kNever);
}

}  // namespace
}  // namespace doppler::test
