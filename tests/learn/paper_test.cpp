// The published network, through the module doppler_torch that is opened on demand.

#include "doppler/learn/paper.h"

#include "doppler/learn/learner.h"
#include "doppler/learn/torch/paper_engine.h"
#include "tests/learn/support.h"

namespace doppler::test {
namespace {

std::unique_ptr<Network<float>> paper_network(std::uint64_t seed) {
  return make_paper_network(Rng(seed), executable_directory());
}

template <typename Blocks>
std::size_t total(const Blocks& blocks) {
  std::size_t result = 0;
  for (const PaperBlock& block : blocks) result += block.size();
  return result;
}

TEST(ThePublishedNetwork, HasThePublishedNumberOfParameters) {
  // Published, per policy: edge network 2,113,792; GRU 99,072; first map 768; head 33,665 (SEL) and 34,433 (PLC).
  // Here an edge has a second feature, its direction (+128), and the bias of the messages is counted (+128).
  EXPECT_EQ(total(kPaperGnn), 2'113'792U + 128 + 99'072 + 768 + 128);
  EXPECT_EQ(total(kPaperSel), 33'665U);
  // The device map has a sixth feature (+128) in place of a bias (-128); a bias of the logit would change nothing (-1).
  const auto network = paper_network(1);
  EXPECT_EQ(total(kPaperPlc) + network->head_shape().size(), 34'433U - 1);
  EXPECT_EQ(network->parameters().size(),
            2 * total(kPaperGnn) + total(kPaperSel) + total(kPaperPlc) + network->head_shape().size());
}

TEST(ThePublishedNetwork, IsTheSameForTheSameSeed) {
  const auto world = mixed_world();
  const PolicyInput input(world->problem);
  const auto a = paper_network(1), b = paper_network(1), c = paper_network(2);
  Embedding<float> of_a, of_b, of_c;
  a->embed(input, {}, of_a);
  b->embed(input, {}, of_b);
  c->embed(input, {}, of_c);
  EXPECT_EQ(of_a.score, of_b.score);
  EXPECT_EQ(of_a.current, of_b.current);
  EXPECT_NE(of_a.score, of_c.score);
}

// Of Σ c · outputs for random c, along random directions and for single parameters of every block.
void expect_right_gradient(const World& world) {
  const PolicyInput input(world.problem);
  const auto network = paper_network(1);
  const std::size_t size = network->parameters().size(), outside = size - network->head_shape().size();
  Rng rng(2);
  for (float& parameter : network->parameters()) parameter += static_cast<float>(rng.uniform(-0.02, 0.02));
  const Embedding<float> weights = random_embedding<float>(input.op_count(), kPaperHead, 3);
  Embedding<float> embedding;
  const auto loss = [&] {
    network->embed(input, {}, embedding);
    double sum = 0;
    for (std::size_t i = 0; i < embedding.score.size(); ++i)
      sum += static_cast<double>(weights.score[i]) * static_cast<double>(embedding.score[i]);
    for (std::size_t i = 0; i < embedding.current.size(); ++i)
      sum += static_cast<double>(weights.current[i]) * static_cast<double>(embedding.current[i]) +
             static_cast<double>(weights.placed[i]) * static_cast<double>(embedding.placed[i]);
    return sum;
  };
  loss();
  network->backward(weights);
  const std::vector<float> gradient(network->gradients().begin(), network->gradients().end());
  loss();
  network->backward(weights);
  for (std::size_t i = 0; i < size; i += 997) EXPECT_NEAR(network->gradients()[i], 2 * gradient[i], 1e-3);
  for (std::size_t i = outside; i < size; ++i) EXPECT_EQ(gradient[i], 0);

  // Random directions within one block at a time; in single precision a difference is right to a percent or so.
  std::size_t begin = 0;
  const auto check = [&](const auto& blocks, const char* name) {
    for (std::size_t b = 0; b < blocks.size(); begin += blocks[b].size(), ++b) {
      const std::vector<float> kept(network->parameters().begin(), network->parameters().end());
      std::vector<double> direction(blocks[b].size());
      double expected = 0, norm = 0;
      for (std::size_t i = 0; i < direction.size(); ++i) {
        direction[i] = rng.normal();
        expected += direction[i] * static_cast<double>(gradient[begin + i]);
        norm += static_cast<double>(gradient[begin + i]) * static_cast<double>(gradient[begin + i]);
      }
      // Mostly along the gradient, so that the difference is well above rounding.
      for (std::size_t i = 0; i < direction.size(); ++i) {
        const double share = norm > 0 ? static_cast<double>(gradient[begin + i]) / std::sqrt(norm) : 0;
        expected += 10 * share * static_cast<double>(gradient[begin + i]);
        direction[i] += 10 * share;
      }
      const double step = 2e-3 / std::sqrt(static_cast<double>(direction.size()) + 100);
      const auto moved = [&](double by) {
        for (std::size_t i = 0; i < direction.size(); ++i)
          network->parameters()[begin + i] =
              static_cast<float>(static_cast<double>(kept[begin + i]) + by * direction[i]);
        const double value = loss();
        std::copy(kept.begin(), kept.end(), network->parameters().begin());
        return value;
      };
      const double found = (moved(step) - moved(-step)) / (2 * step);
      EXPECT_NEAR(found, expected, 0.02 * std::abs(expected) + 0.05) << name << " block " << b;
    }
  };
  check(kPaperGnn, "sel gnn");
  check(kPaperSel, "sel");
  check(kPaperGnn, "plc gnn");
  check(kPaperPlc, "plc");
  EXPECT_EQ(begin, outside);
}

TEST(ThePublishedNetworksGradient, IsRightWhereFewTensorsDiffer) { expect_right_gradient(*mixed_world()); }

TEST(ThePublishedNetworksGradient, IsRightWhereEveryTensorDiffers) {
  LayeredOptions options;
  options.ops = 60;
  options.width = 6;
  expect_right_gradient(World(generate_layered(options), load_machine("p100x4")));
}

TEST(ThePublishedNetwork, RunsOnOneOp) {
  const World world(graph_of({3}, {}), machine_of({"a", "a"}));
  const PolicyInput input(world.problem);
  const auto network = paper_network(1);
  Embedding<float> embedding;
  network->embed(input, {}, embedding);
  EXPECT_TRUE(std::isfinite(embedding.score[0]));
  network->backward(random_embedding<float>(1, kPaperHead, 1));
  for (const float value : network->gradients()) ASSERT_TRUE(std::isfinite(value));
}

TEST(ThePublishedNetwork, LearnsToAgreeWithCriticalPath) {
  LayeredOptions options;
  options.ops = 40;
  options.width = 5;
  options.costs.spread = 0;  // all tensors are alike, so that the edge network has little to do
  const World world(generate_layered(options), load_machine("p100x4"));
  const Task task("layered", world.problem, std::make_unique<SimulatorOracle>(world.problem));
  const auto network = paper_network(1);
  LearnerOptions learner_options;
  learner_options.batch = 4;
  Learner learner(*network, learner_options);
  const auto mean_of_ten = [&](std::uint64_t seed) {
    double sel = 0, plc = 0;
    for (std::uint64_t i = 0; i < 10; ++i) {
      const UpdateReport report = learner.imitate(task, TeacherRule::critical_path, 1e-3, Rng(seed + i));
      sel += report.sel_agreement / 10;
      plc += report.plc_agreement / 10;
    }
    return std::pair(sel, plc);
  };
  const auto [sel_before, plc_before] = mean_of_ten(0);
  for (std::uint64_t i = 1; i < 9; ++i) mean_of_ten(10 * i);
  const auto [sel_after, plc_after] = mean_of_ten(90);
  EXPECT_GT(sel_after, sel_before + 0.05);
  EXPECT_GT(plc_after, plc_before + 0.05);
}

}  // namespace
}  // namespace doppler::test
