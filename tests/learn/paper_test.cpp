// The published network, through the module doppler_torch that is opened on demand.

#include "doppler/learn/paper/paper.h"

#include "doppler/base/module.h"
#include "doppler/learn/paper/paper_torch.h"
#include "doppler/learn/policy_table.h"
#include "doppler/learn/train/learner.h"
#include "tests/learn/support.h"

namespace doppler::test {
namespace {

std::unique_ptr<Network<float>> paper_network(std::uint64_t seed) {
  return make_paper_network(Rng(seed), library_directory());
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
  const PolicyInput input(*world);
  const auto a = paper_network(1), b = paper_network(1), c = paper_network(2);
  Embedding<float> of_a, of_b, of_c;
  a->embed(input, {}, of_a);
  b->embed(input, {}, of_b);
  c->embed(input, {}, of_c);
  EXPECT_EQ(of_a.score, of_b.score);
  EXPECT_EQ(of_a.current, of_b.current);
  EXPECT_NE(of_a.score, of_c.score);
}

// A network on a graph, and Σ c · outputs for random c.
class Differentiable {
 public:
  explicit Differentiable(const Problem& world)
      : input_(world), network_(paper_network(1)), weights_(random_embedding<float>(input_.op_count(), kPaperHead, 3)) {
    for (float& parameter : network_->parameters()) parameter += static_cast<float>(rng_.uniform(-0.02, 0.02));
  }
  Network<float>& network() { return *network_; }

  double value() {
    network_->embed(input_, {}, embedding_);
    const auto dot = [](const std::vector<float>& a, const std::vector<float>& b) {
      double sum = 0;
      for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
      return sum;
    };
    return dot(weights_.score, embedding_.score) + dot(weights_.current, embedding_.current) +
           dot(weights_.placed, embedding_.placed);
  }
  void backward() {
    value();
    network_->backward(weights_);
  }

  // The slope at `begin` … along a random direction that leans towards the gradient, so that the difference is well
  // above the rounding of single precision: by a difference, and by the gradient.
  std::pair<double, double> slopes(std::size_t begin, std::span<const float> gradient) {
    std::vector<double> direction(gradient.size());
    double norm = 0, expected = 0;
    for (const float g : gradient) norm += static_cast<double>(g) * static_cast<double>(g);
    for (std::size_t i = 0; i < direction.size(); ++i) {
      const auto g = static_cast<double>(gradient[i]);
      direction[i] = rng_.normal() + (norm > 0 ? 10 * g / std::sqrt(norm) : 0);
      expected += direction[i] * g;
    }
    const auto here = network_->parameters().subspan(begin, gradient.size());
    const std::vector<float> kept(here.begin(), here.end());
    const auto moved = [&](double by) {
      for (std::size_t i = 0; i < kept.size(); ++i)
        here[i] = static_cast<float>(static_cast<double>(kept[i]) + by * direction[i]);
      const double result = value();
      std::ranges::copy(kept, here.begin());
      return result;
    };
    const double step = 2e-3 / std::sqrt(static_cast<double>(direction.size()) + 100);
    return {(moved(step) - moved(-step)) / (2 * step), expected};
  }

 private:
  PolicyInput input_;
  std::unique_ptr<Network<float>> network_;
  Embedding<float> weights_, embedding_;
  Rng rng_{2};
};

void expect_right_gradient(const Problem& world) {
  Differentiable function(world);
  Network<float>& network = function.network();
  function.backward();
  const std::vector<float> gradient(network.gradients().begin(), network.gradients().end());
  function.backward();
  for (std::size_t i = 0; i < gradient.size(); i += 997) EXPECT_NEAR(network.gradients()[i], 2 * gradient[i], 1e-3);
  const std::size_t outside = gradient.size() - network.head_shape().size();
  for (std::size_t i = outside; i < gradient.size(); ++i) EXPECT_EQ(gradient[i], 0);

  std::size_t begin = 0;
  const auto check = [&](std::span<const PaperBlock> blocks, const char* name) {
    for (std::size_t b = 0; b < blocks.size(); begin += blocks[b].size(), ++b) {
      const auto [found, expected] = function.slopes(begin, std::span(gradient).subspan(begin, blocks[b].size()));
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
  expect_right_gradient(Problem(generate_layered(options), load_machine("p100x4")));
}

TEST(ThePublishedNetwork, RunsOnOneOp) {
  const Problem world(graph_of({3}, {}), machine_of({"a", "a"}));
  const PolicyInput input(world);
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
  const Problem world(generate_layered(options), load_machine("p100x4"));
  Task task("layered", std::make_unique<ExactObjective>(world));
  const auto policy = make_policy("paper", Rng(1));
  LearnerOptions learner_options;
  learner_options.batch = 4;
  Learner learner(*policy, learner_options);
  const auto mean_of_ten = [&](std::uint64_t seed) {
    double sel = 0, plc = 0;
    for (std::uint64_t i = 0; i < 10; ++i) {
      const UpdateReport report = learner.imitate(task, TeacherRule::critical_path, 1e-3, Rng(seed + i));
      sel += report.agreement[0].share / 10;
      plc += report.agreement[1].share / 10;
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
