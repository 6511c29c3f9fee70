#include "doppler/learn/device_choice.h"
#include "doppler/learn/gdp/gdp_policy.h"
#include "tests/learn/unit_policy.h"

namespace doppler::test {
namespace {

constexpr const char* kSmallGdp = "gdp width 32 layers 1 segment 4";
// A central difference of a sum of some hundred outputs is right to about that.
constexpr double kGdpTolerance = 1e-6;

TEST(Gdp, DecidesTheSameForTheSameSeed) { expect_the_same_for_the_same_seed(kSmallGdp); }
TEST(Gdp, FollowsItsOwnDecisionsWithTheSameProbabilityAndGradient) { expect_own_decisions_followed(kSmallGdp); }
TEST(Gdp, HasTheGradientOfItsLogProbability) {
  // In one segment: no gradient flows through the memory of another.
  expect_gradient_of_log_probability("gdp width 32 layers 2 segment 16");
}
TEST(Gdp, LearnsToKeepPairsTogether) { expect_learning("gdp width 32 layers 1 segment 64", 150, 4.5); }

TEST(Gdp, RefusesWhatDoesNotFitInMemoryOrHasTooManyDevices) {
  const Graph chain = graph_of({1, 1}, {{0, 1, 1}});
  EXPECT_EQ(refusal_of(kSmallGdp, Problem(chain, uniform_machine(65))),
            "here: 65 devices; required at most 64 for gdp");
  // 8 layers × (150 · 256 + 8 · 1024 · 8 heads) numbers per unit, of which 2²⁹ may be kept: 645 units.
  const Problem large(graph_of(std::vector<Seconds>(646, 1), {}), uniform_machine(2));
  EXPECT_EQ(
      refusal_of("gdp width 256 layers 8 segment 1024", large),
      "here: 646 ops; required at most 645 for 'gdp width 256 layers 8 segment 1024', whose attention keeps every "
      "op in memory");
}

TEST(Gdp, RefusesDescriptionsOfOtherSizes) {
  for (const char* text :
       {"gdp", "gdp width 33 layers 1 segment 4", "gdp width 512 layers 1 segment 4", "gdp width 32 layers 0 segment 4",
        "gdp width 32 layers 1 segment 0", "gdp width 32 layers 1 segment 4 more"})
    EXPECT_THROW(make_policy(text, Rng(1)), InputError) << text;
}

TEST(Gdp, IsBlindToWhatIsLeftOutAndStaysSo) {
  const auto policy = make_policy(kSmallGdp, Rng(1));
  policy->leave_out("position");
  EXPECT_THROW(policy->leave_out("everything"), InputError);
  // The weights of the features are the first parameters: 16 rows for the type, then 16 for the position.
  const auto expect_blind = [&] {
    for (std::size_t i = 0; i < 32 * 32; ++i) EXPECT_EQ(policy->parameters()[i] == 0, i >= 16 * 32) << i;
  };
  expect_blind();
  Learner learner(*policy, {});
  const auto task = layered_task();
  for (std::uint64_t i = 0; i < 3; ++i) learner.reinforce(*task, 1e-2, 0.01, Rng(i));
  expect_blind();
}

TEST(APlacementThatCannotBeFollowed, TeachesNothing) {
  // Both ops are pinned to device 1; whoever wants them on device 0 leaves no gradient.
  const Problem world(graph_of({1, 1}, {{0, 1, 1}}), machine_of({"a", "a"}), Rules{}, {{0, 1}, {1, 1}});
  const auto policy = make_policy(kSmallGdp, Rng(1));
  policy->begin(policy->encode(world));
  Episode episode;
  policy->follow(episode, {}, std::vector<DeviceId>{0, 0});
  EXPECT_EQ(episode.device_of_op, (std::vector<DeviceId>{1, 1}));
  policy->backward(episode, {.decisions = 1, .entropy = 1});
  policy->finish();
  for (const float gradient : policy->gradients()) EXPECT_EQ(gradient, 0);
}

TEST(TheClippedWeight, IsZeroOnceADecisionHasGoneFarEnough) {
  // ratio · weight while the ratio is within 0.8 and 1.2, or on the side from which it would come back.
  EXPECT_DOUBLE_EQ(clipped_weight(2, 1.1, 0.2), 2.2);
  EXPECT_EQ(clipped_weight(2, 1.3, 0.2), 0);
  EXPECT_DOUBLE_EQ(clipped_weight(2, 0.5, 0.2), 1);
  EXPECT_DOUBLE_EQ(clipped_weight(-2, 0.9, 0.2), -1.8);
  EXPECT_EQ(clipped_weight(-2, 0.7, 0.2), 0);
  EXPECT_DOUBLE_EQ(clipped_weight(-2, 1.5, 0.2), -3);
}

TEST(AReplayedEpisode, HasTheSameGradientWhileNothingHasChanged) {
  const auto world = mixed_world();
  const auto policy = make_policy(kSmallGdp, Rng(1));
  const auto encoded = policy->encode(*world);
  Episode episode;
  Rng rng(3);
  policy->begin(encoded);
  policy->act(episode, Deciding::sampled, rng);
  const double log_probability = episode.log_probability;
  policy->backward(episode, {.decisions = 1});
  policy->finish();
  const std::vector<float> once = taken_gradients(*policy);
  for (int epoch = 0; epoch < 2; ++epoch) {
    policy->begin(encoded);
    policy->replay(episode);
    EXPECT_EQ(episode.log_probability, log_probability);
    policy->backward(episode, {.decisions = 1, .clip = 0.2});
    policy->finish();
    EXPECT_EQ(once, taken_gradients(*policy));
  }
}

TEST(AReplayedEpisode, IsLearnedFromNoFurtherOnceItIsProbableEnough) {
  // Long steps along the gradient make every decision more than 1.2 times as probable as it was. The ratio is to the
  // probability when the decision was made, however often it is replayed.
  const Problem world(graph_of({1, 2, 3}, {{0, 1, 1}, {1, 2, 1}}), machine_of({"a", "a", "a"}));
  const auto policy = make_policy(kSmallGdp, Rng(1));
  const auto encoded = policy->encode(world);
  Episode episode;
  Rng rng(3);
  policy->begin(encoded);
  policy->act(episode, Deciding::sampled, rng);
  for (int step = 0; step < 40; ++step) {
    policy->begin(encoded);
    policy->replay(episode);
    policy->backward(episode, {.decisions = 1});
    policy->finish();
    const std::vector<float> gradient = taken_gradients(*policy);
    for (std::size_t i = 0; i < gradient.size(); ++i) policy->parameters()[i] -= 0.02F * gradient[i];
  }
  ASSERT_GT(episode.log_probability, 3 * std::log(0.9));  // Each was about a third.
  const auto largest = [&](double weight) {
    policy->begin(encoded);
    policy->replay(episode);
    policy->backward(episode, {.decisions = weight, .clip = 0.2});
    policy->finish();
    const std::vector<float> gradient = taken_gradients(*policy);
    return *std::ranges::max_element(gradient);
  };
  EXPECT_EQ(largest(1), 0);
  EXPECT_GT(largest(-1), 0);
}

// The sum of all logits with random weights, and its derivative by all parameters from `first` on against central
// differences.
void expect_right_gradient(const GdpShape& shape, std::size_t first) {
  const auto world = mixed_world();
  const GdpInput input(*world);
  GdpNetwork<double> network(shape, Rng(7));
  Rng rng(8);
  for (double& parameter : network.parameters().values()) parameter += rng.uniform(-0.1, 0.1);
  std::vector<double> weights(std::size_t{input.units().count()} * 3);
  for (double& weight : weights) weight = rng.uniform(-1, 1);
  Tape<double> tape;
  const auto loss = [&] {
    tape.clear();
    const auto logits = tape.value(network.logits(tape, input));
    return std::inner_product(logits.begin(), logits.end(), weights.begin(), 0.0);
  };
  tape.clear();
  const auto logits = network.logits(tape, input);
  std::ranges::copy(weights, tape.gradient(logits).begin());
  tape.backward();
  const std::vector<double> found(network.parameters().gradients().begin(), network.parameters().gradients().end());
  ASSERT_LT(first, found.size());
  for (std::size_t i = first; i < found.size(); i += 29)
    ASSERT_NEAR(found[i], difference(loss, network.parameters().values()[i]), kGdpTolerance) << "parameter " << i;
}

TEST(TheGradientOfGdp, IsRightInOneSegment) { expect_right_gradient({.width = 32, .layers = 2, .segment = 16}, 0); }

TEST(TheGradientOfGdp, IsRightForTheWeightsThatReadTheMemory) {
  // Differences see what flows through the memory and the gradient does not, but nothing of the one layer of the placer
  // flows there. It has 12 · 32² + 10 · 32 parameters, and 64 · 32 + 65 come after it.
  const GdpShape shape = {.width = 32, .layers = 1, .segment = 4};
  const std::size_t all = GdpNetwork<double>(shape, Rng(1)).parameters().values().size();
  expect_right_gradient(shape, all - (12 * 32 * 32 + 10 * 32) - (64 * 32 + 65));
}

}  // namespace
}  // namespace doppler::test
