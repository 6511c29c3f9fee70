// The hand-written backward passes against central differences, in double precision. torch_gradient_test.cpp holds them
// against libtorch's autograd.

#include "tests/learn/support.h"

namespace doppler::test {
namespace {

// A central difference of a function of order one is right to about kStep² + 1e-16 / kStep.
constexpr double kTolerance = 1e-7;

using Setting = std::tuple<DeviceFeatureSet, std::size_t /*hidden*/>;
class ARolloutsGradient : public testing::TestWithParam<Setting> {
 protected:
  ARolloutsGradient() : world_(mixed_world()), input_(*world_) {
    const auto [set, hidden] = GetParam();
    shape_ = {.width = kBlock, .features = feature_count(set), .hidden = hidden};
    embedding_ = random_embedding<double>(input_.op_count(), shape_.width, 1);
    head_ = random_head<double>(shape_, 2);
  }
  Rollout<double> rollout() const {
    Rollout<double> result(std::get<0>(GetParam()), shape_, true);
    result.bind(input_);
    return result;
  }

  // After an episode.
  void expect_right(Rollout<double>& rollout, const LossWeights& weights, std::optional<TeacherRule> teacher = {},
                    std::span<const DeviceId> devices = {}) {
    if (devices.empty()) devices = rollout.device_of_op();
    const SlowLoss slow{input_,
                        std::get<0>(GetParam()),
                        shape_,
                        {rollout.order().begin(), rollout.order().end()},
                        {devices.begin(), devices.end()},
                        teacher};
    const SlowLoss::Parts parts = slow(embedding_, head_.data());
    EXPECT_NEAR(rollout.log_probability(), -parts.sel - parts.plc, 1e-10);
    EXPECT_NEAR(rollout.entropy() * input_.op_count(), parts.sel_entropy + parts.plc_entropy, 1e-10);

    Embedding<double> gradient;
    gradient.resize(input_.op_count(), shape_.width);
    gradient.fill_zero();
    std::vector<double> head_gradient(shape_.size(), 0.0);
    rollout.backward(head_.data(), weights, gradient, head_gradient.data());
    const auto loss = [&] { return slow(embedding_, head_.data()).total(weights); };
    const auto compare = [&](const char* name, std::vector<double>& values, const std::vector<double>& found) {
      for (std::size_t i = 0; i < values.size(); i += stride(1))
        ASSERT_NEAR(found[i], difference(loss, values[i]), kTolerance) << name << " " << i;
    };
    compare("current", embedding_.current, gradient.current);
    compare("placed", embedding_.placed, gradient.placed);
    compare("producer", embedding_.producer, gradient.producer);
    compare("score", embedding_.score, gradient.score);
    compare("head", head_, head_gradient);
  }

  std::unique_ptr<Problem> world_;
  PolicyInput input_;
  HeadShape shape_;
  Embedding<double> embedding_;
  std::vector<double> head_;
};

TEST_P(ARolloutsGradient, IsRightForSampledDecisions) {
  auto episode = rollout();
  Rng rng(3);
  episode.act(embedding_, head_.data(), Deciding::sampled, rng);
  expect_right(episode, {.sel = 0.7, .plc = -1.3, .entropy = 0.4});
}

TEST_P(ARolloutsGradient, IsRightForScoresThatDifferByOrdersOfMagnitude) {
  // They are as far apart as a network may put them: what is left of Σ exp(score) after the largest has gone must be
  // exact.
  for (double& score : embedding_.score) score *= 20;
  auto episode = rollout();
  Rng rng(3);
  episode.act(embedding_, head_.data(), Deciding::sampled, rng);
  expect_right(episode, {.sel = 0.7, .plc = -1.3, .entropy = 0.4});
}

TEST_P(ARolloutsGradient, IsRightForTheEntropyAlone) {
  auto episode = rollout();
  Rng rng(4);
  episode.act(embedding_, head_.data(), Deciding::sampled, rng);
  expect_right(episode, {.entropy = 1});
}

TEST_P(ARolloutsGradient, IsRightForGreedyDecisions) {
  auto episode = rollout();
  Rng rng(5);
  episode.act(embedding_, head_.data(), Deciding::greedy, rng);
  expect_right(episode, {.sel = 1, .plc = 1});
}

TEST_P(ARolloutsGradient, IsRightForGivenDecisionsEvenWhereTheMaskForbidsThem) {
  auto episode = rollout();
  std::vector<OpId> order(input_.op_count());
  std::iota(order.begin(), order.end(), 0);
  // Op 8 is in the group of op 6 but sits elsewhere, op 5 is pinned to device 1.
  const std::vector<DeviceId> devices = {0, 1, 1, 2, 0, 0, 1, 2, 2, 0};
  episode.follow(embedding_, head_.data(), order, devices);
  expect_right(episode, {.sel = 0.5, .plc = 2, .entropy = 0.1}, {}, devices);
}

TEST_P(ARolloutsGradient, IsRightForTheSetsOfATeacher) {
  for (const TeacherRule teacher : {TeacherRule::critical_path, TeacherRule::heft}) {
    auto episode = rollout();
    Rng rng(6);
    episode.imitate(embedding_, head_.data(), teacher, rng);
    expect_right(episode, {.sel = 1, .plc = 1.5, .entropy = 0.2}, teacher);
  }
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutHiddenLayer, ARolloutsGradient,
                         testing::Values(Setting{DeviceFeatureSet::improved, 0},
                                         Setting{DeviceFeatureSet::improved, 32}, Setting{DeviceFeatureSet::paper, 64}),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param) == DeviceFeatureSet::paper ? "Paper"
                                                                                                  : "Improved") +
                                  std::to_string(std::get<1>(param.param));
                         });

// Checks the gradient of Σ c · outputs, for random c.
void expect_right_gradient(const GnnShape& shape) {
  const auto world = mixed_world();
  const PolicyInput input(*world);
  Gnn<double> network(shape, Rng(7));
  Rng rng(8);
  for (double& parameter : network.parameters()) parameter += rng.uniform(-0.1, 0.1);
  std::vector<double> progress(shape.per_step ? input.op_count() * kProgressFeatures : 0);
  for (double& value : progress) value = rng.uniform();
  const Embedding<double> weights = random_embedding<double>(input.op_count(), shape.width, 9);
  Embedding<double> embedding;
  const auto loss = [&] {
    network.embed(input, progress, embedding);
    const auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
      return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
    };
    return dot(weights.current, embedding.current) + dot(weights.placed, embedding.placed) +
           dot(weights.producer, embedding.producer) + dot(weights.score, embedding.score);
  };
  loss();
  network.backward(weights);
  const std::vector<double> once(network.gradients().begin(), network.gradients().end());
  loss();
  network.backward(weights);
  const std::size_t outside = network.parameters().size() - network.head_shape().size();
  for (std::size_t i = 0; i < network.parameters().size(); ++i) {
    ASSERT_NEAR(network.gradients()[i], 2 * once[i], 1e-9) << "gradients add up; parameter " << i;
    if (i >= outside) {
      ASSERT_EQ(once[i], 0) << "the head is not the network's business";
    }
  }
  // Every seventh, which meets every block of parameters: widths are multiples of 32. The sum of some thousand outputs
  // is of order 100, so rounding costs two digits.
  for (std::size_t i = 0; i < outside; i += stride(7))
    ASSERT_NEAR(once[i], difference(loss, network.parameters()[i]), 100 * kTolerance) << "parameter " << i;
}

TEST(TheGraphNetworksGradient, IsRight) { expect_right_gradient({}); }
TEST(TheGraphNetworksGradient, IsRightWithProgressFeatures) { expect_right_gradient({.per_step = true}); }
TEST(TheGraphNetworksGradient, IsRightForOneWideLayer) { expect_right_gradient({.width = 64, .layers = 1}); }

}  // namespace
}  // namespace doppler::test
