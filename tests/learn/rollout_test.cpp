#include "doppler/base/error.h"
#include "doppler/learn/doppler/joint_rollout.h"
#include "doppler/learn/paper/paper.h"
#include "tests/learn/support.h"
#include "tests/sim/allocation_count.h"

namespace doppler::test {
namespace {

constexpr HeadShape kShape;

TEST(TheRaceForTheNextOp, DrawsOrdersWithTheirSoftmaxProbabilities) {
  // Ops 0, 1 and 2 are ready at once, 3 joins late, after 0. There are 12 orders; each has the product of
  // exp(score) / Σ over the ready ops as its probability.
  const Problem world(graph_of({1, 1, 1, 1}, {{0, 3, 1}}), machine_of({"a"}));
  const PolicyInput input(world);
  Embedding<double> embedding = random_embedding<double>(4, kBlock, 1);
  embedding.score = {0.4, -0.9, 1.1, 1.6};
  const std::vector<double> head = random_head<double>(kShape, 2);

  std::map<std::vector<OpId>, double> expected, found;
  std::vector<OpId> order = {0, 1, 2, 3};
  do {
    double probability = 1;
    std::vector<OpId> ready = {0, 1, 2};
    for (const OpId op : order) {
      const auto at = std::find(ready.begin(), ready.end(), op);
      if (at == ready.end()) {
        probability = 0;
        break;
      }
      double z = 0;
      for (const OpId other : ready) z += std::exp(embedding.score[other]);
      probability *= std::exp(embedding.score[op]) / z;
      ready.erase(at);
      if (op == 0) ready.push_back(3);
    }
    if (probability > 0) expected[order] = probability;
  } while (std::next_permutation(order.begin(), order.end()));
  ASSERT_EQ(expected.size(), 12U);

  Rollout<double> rollout(DeviceFeatureSet::improved, kShape, false);
  rollout.bind(input);
  Rng rng(3);
  constexpr double kDraws = 50'000;
  for (int i = 0; i < kDraws; ++i) {
    rollout.act(embedding, head.data(), Deciding::sampled, rng);
    ++found[{rollout.order().begin(), rollout.order().end()}];
  }
  double chi_square = 0;
  for (const auto& [key, probability] : expected)
    chi_square += std::pow(found[key] - kDraws * probability, 2) / (kDraws * probability);
  EXPECT_EQ(found.size(), 12U);
  EXPECT_LT(chi_square, 31.3);  // 99.9 % of the chi-square distribution with 11 degrees of freedom
}

TEST(TheRaceForTheNextOp, IsFairAfterALongWaitForAnUnlikelyOp) {
  // 0 and 1 take about exp(20) to be drawn, 2 and 3, which join after 0, exp(-20): a double cannot hold both, and a tie
  // would always go to 2. Half of 4000 draws is 2000, with a standard deviation of 32.
  const Problem world(graph_of({1, 1, 1, 1}, {{0, 2, 1}, {0, 3, 1}}), machine_of({"a"}));
  const PolicyInput input(world);
  Embedding<double> embedding = random_embedding<double>(4, kBlock, 1);
  embedding.score = {-20, -20, 20, 20};
  const std::vector<double> head = random_head<double>(kShape, 2);
  Rollout<double> rollout(DeviceFeatureSet::improved, kShape, false);
  rollout.bind(input);
  Rng rng(3);
  int second_first = 0;
  for (int i = 0; i < 4000; ++i) {
    rollout.act(embedding, head.data(), Deciding::sampled, rng);
    const auto order = rollout.order();
    second_first += std::find(order.begin(), order.end(), 3U) < std::find(order.begin(), order.end(), 2U) ? 1 : 0;
  }
  EXPECT_NEAR(second_first, 2000, 5 * 32);
}

TEST(TheDeviceHead, DrawsDevicesWithItsProbabilities) {
  const Problem world(graph_of({1}, {}), machine_of({"a", "b", "c", "d"}));
  const PolicyInput input(world);
  // Equal devices have equal probabilities: a quarter each.
  const Embedding<double> embedding = random_embedding<double>(1, kBlock, 1);
  const std::vector<double> head = random_head<double>(kShape, 2);
  Rollout<double> rollout(DeviceFeatureSet::improved, kShape, true);
  rollout.bind(input);
  Rng rng(3);
  constexpr double kDraws = 20'000;
  std::vector<double> found(4, 0.0);
  for (int i = 0; i < kDraws; ++i) {
    rollout.act(embedding, head.data(), Deciding::sampled, rng);
    ++found[rollout.device_of_op()[0]];
  }
  double chi_square = 0;
  for (DeviceId device = 0; device < 4; ++device) {
    EXPECT_NEAR(rollout.probability(0, device), 0.25, 1e-12);
    chi_square += std::pow(found[device] - kDraws / 4, 2) / (kDraws / 4);
  }
  EXPECT_LT(chi_square, 16.3);  // 99.9 %, 3 degrees of freedom
}

TEST(Imitation, LearnsFromADeviceThatThePolicyThinksImpossible) {
  // With a head this steep some probabilities are exp(-200): 0 in f32, but the logit has its gradient all the same,
  // −1.
  const auto world = mixed_world({}, false);
  const PolicyInput input(*world);
  const auto imitate = [&]<typename Real>(Real) {
    const Embedding<Real> embedding = random_embedding<Real>(input.op_count(), kBlock, 1);
    std::vector<Real> head = random_head<Real>(kShape, 2);
    for (std::size_t i = kShape.output_offset(); i < head.size(); ++i) head[i] *= 300;
    Rollout<Real> rollout(DeviceFeatureSet::improved, kShape, true);
    rollout.bind(input);
    Rng rng(5);
    rollout.imitate(embedding, head.data(), TeacherRule::critical_path, rng);
    const double log_probability = rollout.log_probability();
    Embedding<Real> gradient;
    gradient.resize(input.op_count(), kBlock);
    gradient.fill_zero();
    std::vector<Real> head_gradient(head.size(), Real{0});
    rollout.backward(head.data(), {.plc = 1}, gradient, head_gradient.data());
    double square = 0;
    for (const Real value : gradient.current) square += static_cast<double>(value) * static_cast<double>(value);
    return std::pair(log_probability, std::sqrt(square));
  };
  const auto [exact, exact_norm] = imitate(0.0);
  const auto [found, found_norm] = imitate(0.0F);
  ASSERT_LT(exact, -150);  // ln of the smallest float is -103
  EXPECT_NEAR(found / exact, 1, 1e-3);
  EXPECT_NEAR(found_norm / exact_norm, 1, 1e-3);
}

TEST(AGreedyRollout, TakesTheLargestScoreAndTheMostProbableDevice) {
  const auto world = mixed_world({}, false);
  const PolicyInput input(*world);
  const Embedding<double> embedding = random_embedding<double>(input.op_count(), kBlock, 1);
  const std::vector<double> head = random_head<double>(kShape, 2);
  Rollout<double> rollout(DeviceFeatureSet::improved, kShape, true);
  rollout.bind(input);
  Rng rng(3);
  rollout.act(embedding, head.data(), Deciding::greedy, rng);
  std::vector<char> placed(input.op_count(), 0);
  for (std::size_t step = 0; step < rollout.order().size(); ++step) {
    const OpId op = rollout.order()[step];
    for (OpId other = 0; other < input.op_count(); ++other) {
      const auto producers = input.producers(other);
      const bool ready = !placed[other] && std::all_of(producers.begin(), producers.end(),
                                                       [&](const PolicyInput::Edge& edge) { return placed[edge.op]; });
      EXPECT_TRUE(!ready || embedding.score[op] >= embedding.score[other]);
    }
    for (DeviceId device = 0; device < input.device_count(); ++device)
      EXPECT_GE(rollout.probability(step, rollout.device_of_op()[op]), rollout.probability(step, device));
    placed[op] = 1;
  }
}

TEST(AJointRollout, DrawsPairsWithTheirSoftmaxProbabilities) {
  // Three ops and three devices at the first step: nine pairs, whose probabilities are those of one softmax. With two
  // candidates op 2, whose b-level is the least, is never first.
  const Problem world(graph_of({3, 2, 1}, {}), machine_of({"a", "b", "c"}));
  const PolicyInput input(world);
  Embedding<double> embedding = random_embedding<double>(3, kBlock, 1);
  const std::vector<double> head = random_head<double>(kShape, 2);
  for (const std::size_t candidates : {std::size_t{2}, std::size_t{16}}) {
    JointRollout<double> rollout(DeviceFeatureSet::improved, kShape, candidates, true);
    rollout.bind(input);
    Rng rng(3);
    constexpr double kDraws = 20'000;
    std::map<std::pair<OpId, DeviceId>, double> found;
    for (int i = 0; i < kDraws; ++i) {
      rollout.act(embedding, head.data(), Deciding::sampled, rng);
      ++found[{rollout.order()[0], rollout.device_of_op()[rollout.order()[0]]}];
    }
    // All devices are empty and equal, so an op's pairs are equally probable, and an op is taken by exp of its score
    // plus its logit, which the greedy rollout's probabilities show.
    rollout.act(embedding, head.data(), Deciding::greedy, rng);
    const std::size_t ops = std::min<std::size_t>(candidates, 3);
    EXPECT_EQ(found.size(), ops * 3);
    double chi_square = 0, total = 0;
    for (std::size_t candidate = 0; candidate < ops; ++candidate)  // Candidates are in the order of their ids here.
      for (DeviceId device = 0; device < 3; ++device) {
        const double expected = kDraws * rollout.probability(candidate, device);
        chi_square += std::pow(found[{static_cast<OpId>(candidate), device}] - expected, 2) / expected;
        total += expected;
      }
    EXPECT_NEAR(total, kDraws, 1e-6);
    EXPECT_LT(chi_square, 26.1);  // 99.9 % of the chi-square distribution with 8 degrees of freedom
  }
}

struct Outcome {
  double log_probability, entropy;
  std::vector<double> probabilities;
  Embedding<double> gradient;
  std::vector<double> head_gradient;
};
Outcome outcome(Rollout<double>& rollout, const PolicyInput& input, const std::vector<double>& head) {
  Outcome result{rollout.log_probability(), rollout.entropy(), {}, {}, std::vector<double>(head.size(), 0.0)};
  for (std::size_t step = 0; step < input.op_count(); ++step)
    for (DeviceId device = 0; device < input.device_count(); ++device)
      result.probabilities.push_back(rollout.probability(step, device));
  result.gradient.resize(input.op_count(), kBlock);
  rollout.backward(head.data(), {1, 0.5, 0.25}, result.gradient, result.head_gradient.data());
  return result;
}

TEST(FollowingTheDecisionsOfASampledRollout, GivesItsProbabilitiesAndItsGradient) {
  LayeredOptions options;
  options.ops = 120;
  const Problem world(generate_layered(options), load_machine("p100x4"));
  const PolicyInput input(world);
  const Embedding<double> embedding = random_embedding<double>(input.op_count(), kBlock, 1);
  const std::vector<double> head = random_head<double>(kShape, 2);
  Rollout<double> sampled(DeviceFeatureSet::improved, kShape, true), followed(DeviceFeatureSet::improved, kShape, true);
  sampled.bind(input);
  followed.bind(input);
  Rng rng(3);
  sampled.act(embedding, head.data(), Deciding::sampled, rng);
  followed.follow(embedding, head.data(), sampled.order(), sampled.device_of_op());
  const Outcome a = outcome(sampled, input, head), b = outcome(followed, input, head);
  EXPECT_EQ(a.log_probability, b.log_probability);
  EXPECT_EQ(a.entropy, b.entropy);
  EXPECT_EQ(a.probabilities, b.probabilities);
  EXPECT_EQ(a.gradient.current, b.gradient.current);
  EXPECT_EQ(a.gradient.placed, b.gradient.placed);
  EXPECT_EQ(a.gradient.producer, b.gradient.producer);
  EXPECT_EQ(a.gradient.score, b.gradient.score);
  EXPECT_EQ(a.head_gradient, b.head_gradient);
}

TEST(ARolloutWithoutActivations, DecidesLikeOneThatKeepsThem) {
  const auto world = mixed_world();
  const PolicyInput input(*world);
  const Embedding<float> embedding = random_embedding<float>(input.op_count(), kBlock, 1);
  const std::vector<float> head = random_head<float>(kShape, 2);
  Rollout<float> keeping(DeviceFeatureSet::improved, kShape, true), light(DeviceFeatureSet::improved, kShape, false);
  keeping.bind(input);
  light.bind(input);
  Rng a(3), b(3);
  for (int i = 0; i < 20; ++i) {
    keeping.act(embedding, head.data(), Deciding::sampled, a);
    light.act(embedding, head.data(), Deciding::sampled, b);
    EXPECT_TRUE(std::equal(keeping.order().begin(), keeping.order().end(), light.order().begin()));
    EXPECT_TRUE(std::equal(keeping.device_of_op().begin(), keeping.device_of_op().end(), light.device_of_op().begin()));
  }
}

// One training episode after another: embed, act, backward, backward of the network.
std::size_t allocations_after_the_first_episode(const Problem& world, std::size_t hidden) {
  const PolicyInput input(world);
  Gnn<float> network({}, Rng(1));
  HeadShape shape = network.head_shape();
  shape.hidden = hidden;
  const std::vector<float> head = random_head<float>(shape, 2);
  std::vector<float> head_gradient(shape.size());
  Rollout<float> rollout(network.device_features(), shape, true);
  rollout.bind(input);
  Embedding<float> embedding, gradient;
  gradient.resize(input.op_count(), kBlock);
  gradient.fill_zero();
  Rng rng(3);
  const auto episode = [&] {
    network.embed(input, {}, embedding);
    rollout.act(embedding, head.data(), Deciding::sampled, rng);
    rollout.backward(head.data(), {1, 1, 1}, gradient, head_gradient.data());
    rollout.imitate(embedding, head.data(), TeacherRule::heft, rng);
    rollout.backward(head.data(), {1, 1, 1}, gradient, head_gradient.data());
    network.backward(gradient);
  };
  episode();
  const std::size_t before = allocation_count();
  for (int i = 0; i < 5; ++i) episode();
  return allocation_count() - before;
}

TEST(Training, AllocatesNothingAfterTheFirstEpisode) {
  LayeredOptions options;
  options.ops = 150;
  const Problem roomy(generate_layered(options), load_machine("p100x4"));  // 16 GB each: memory is watched
  EXPECT_EQ(allocations_after_the_first_episode(roomy, 0), 0U);
  EXPECT_EQ(allocations_after_the_first_episode(roomy, 64), 0U);
  const auto mixed = mixed_world();
  EXPECT_EQ(allocations_after_the_first_episode(*mixed, 0), 0U);
}

TEST(ThePublishedNetwork, SaysWhereItLookedForItsModule) {
  try {
    make_paper_network(Rng(1), "/nowhere/bin");
    FAIL() << "required an InputError";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "--architecture paper: found no doppler_torch module at '/nowhere/bin/doppler_torch.so' or "
                 "'/nowhere/lib/doppler/doppler_torch.so' or '/nowhere/doppler/doppler_torch.so'; required a build "
                 "that found libtorch (Debian: libtorch-dev; "
                 "tools/install_deps test)");
  }
}

}  // namespace
}  // namespace doppler::test
