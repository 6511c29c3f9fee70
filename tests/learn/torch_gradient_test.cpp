// The hand-written passes against libtorch's autograd, in double precision: the network and the heads are written once
// more with tensors, straight from the formulas of gnn.h and network.h.

#include "doppler/learn/doppler/joint_rollout.h"
#include "tests/learn/support.h"
#include "tests/learn/torch_leaves.h"

namespace doppler::test {
namespace {

constexpr std::int64_t kWidth = kBlock;

// Row v holds 1 / (number of neighbours) for each neighbour.
torch::Tensor mean_matrix(const PolicyInput& input, bool producers) {
  const auto ops = static_cast<std::int64_t>(input.op_count());
  torch::Tensor matrix = torch::zeros({ops, ops}, torch::kFloat64);
  for (OpId op = 0; op < input.op_count(); ++op) {
    const auto edges = producers ? input.producers(op) : input.consumers(op);
    for (const auto& edge : edges) matrix[op][edge.op] += 1.0 / static_cast<double>(edges.size());
  }
  return matrix;
}

struct Outputs {
  torch::Tensor current, placed, producer, score;
};

Outputs embed(const PolicyInput& input, const GnnShape& shape, Leaves& leaves) {
  const std::vector<double> features(input.node_features().begin(), input.node_features().end());
  const torch::Tensor x =
      torch::tensor(features, torch::kFloat64).view({input.op_count(), static_cast<std::int64_t>(kNodeFeatureCount)});
  const auto linear = [&](const torch::Tensor& in, std::int64_t columns) {
    const torch::Tensor weight = leaves.next({in.size(1), columns});
    return in.matmul(weight) + leaves.next({columns});
  };
  torch::Tensor h = torch::relu(linear(x, kWidth));
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    const torch::Tensor own = leaves.next({kWidth, kWidth}), producers = leaves.next({kWidth, kWidth}),
                        consumers = leaves.next({kWidth, kWidth}), graph = leaves.next({kWidth, kWidth}),
                        bias = leaves.next({kWidth}), gain = leaves.next({kWidth}), shift = leaves.next({kWidth});
    const torch::Tensor message =
        torch::relu(h.matmul(own) + mean_matrix(input, true).matmul(h).matmul(producers) +
                    mean_matrix(input, false).matmul(h).matmul(consumers) + h.mean(0, true).matmul(graph) + bias);
    h = torch::layer_norm(h + message, {kWidth}, gain, shift, 1e-5);
  }
  Outputs result;
  result.current = linear(h, kWidth);
  result.placed = linear(h, kWidth);
  result.producer = linear(h, kWidth);
  const torch::Tensor hidden = torch::relu(linear(h, kWidth));
  result.score = 20 * torch::tanh(linear(hidden, 1).squeeze(1) / 20);
  return result;
}

torch::Tensor entropy(const torch::Tensor& log_probabilities) {
  return -(log_probabilities.exp() * log_probabilities).sum();
}

// The device head, with its parameters as leaves.
struct Head {
  Head(const HeadShape& shape, Leaves& leaves) : features(static_cast<std::int64_t>(shape.features)) {
    const auto hidden = static_cast<std::int64_t>(shape.hidden);
    first = leaves.next({features, hidden > 0 ? hidden : kWidth});
    if (hidden > 0) second = leaves.next({hidden, kWidth});
    output = leaves.next({kWidth});
  }
  static torch::Tensor leaky(const torch::Tensor& x) { return torch::leaky_relu(x, 0.1); }

  // The logit of one device for the op that the state observes.
  torch::Tensor logit(const EpisodeState& state, const Outputs& outputs, OpId op, DeviceId device) const {
    const PolicyInput& input = state.input();
    torch::Tensor sum = outputs.current[op];
    for (OpId other = 0; other < input.op_count(); ++other)
      if (state.device_of_op()[other] == device)
        sum = sum + outputs.placed[other] * (4.0 * input.device_count() / input.op_count());
    std::vector<torch::Tensor> here;
    for (const auto& edge : input.producers(op))
      if (state.device_of_op()[edge.op] == device) here.push_back(outputs.producer[edge.op]);
    if (!here.empty()) sum = sum + torch::stack(here).mean(0);
    const std::vector<double> row(state.features(device), state.features(device) + features);
    torch::Tensor term = torch::tensor(row, torch::kFloat64).matmul(first);
    if (second.defined()) term = leaky(term).matmul(second);
    return leaky(sum + term).dot(output);
  }

  std::int64_t features;
  torch::Tensor first, second, output;
};

// The loss of a rollout's decisions, step by step.
torch::Tensor loss_of(const Rollout<double>& rollout, const PolicyInput& input, const HeadShape& shape,
                      const Outputs& outputs, Leaves& leaves, const LossWeights& weights) {
  const Head head(shape, leaves);
  EpisodeState state(DeviceFeatureSet::improved);
  state.bind(input);
  torch::Tensor loss = torch::zeros({}, torch::kFloat64);
  std::vector<OpId> ready;
  state.for_each_source([&](OpId op) { ready.push_back(op); });
  for (const OpId op : rollout.order()) {
    const auto among = std::find(ready.begin(), ready.end(), op);
    const std::vector<std::int64_t> candidates(ready.begin(), ready.end());
    const torch::Tensor sel = torch::log_softmax(outputs.score.index({torch::tensor(candidates)}), 0);
    loss = loss - weights.sel * sel[among - ready.begin()] - weights.entropy * entropy(sel);
    ready.erase(among);

    state.observe(op);
    std::vector<torch::Tensor> logits;
    std::int64_t target = 0;
    for (DeviceId device = 0; device < input.device_count(); ++device) {
      if (!state.may_go(device)) continue;
      if (device == rollout.device_of_op()[op]) target = static_cast<std::int64_t>(logits.size());
      logits.push_back(head.logit(state, outputs, op, device));
    }
    const torch::Tensor plc = torch::log_softmax(torch::stack(logits), 0);
    loss = loss - weights.plc * plc[target] - weights.entropy * entropy(plc);
    state.place(op, rollout.device_of_op()[op], [&](OpId next) { ready.push_back(next); });
  }
  return loss;
}

// The loss of a joint rollout's decisions: one softmax over the pairs of a step. With a teacher the targets are all
// pairs of the largest b-level and the earliest start.
struct JointLoss {
  torch::Tensor loss = torch::zeros({}, torch::kFloat64);
  double log_probability = 0, entropy = 0;
};
JointLoss joint_loss_of(const Rollout<double>& rollout, std::size_t most, bool taught, const PolicyInput& input,
                        const HeadShape& shape, const Outputs& outputs, Leaves& leaves, const LossWeights& weights) {
  const Head head(shape, leaves);
  EpisodeState state(DeviceFeatureSet::improved);
  state.bind(input);
  JointLoss result;
  std::vector<OpId> ready;
  state.for_each_source([&](OpId op) { ready.push_back(op); });
  for (const OpId chosen : rollout.order()) {
    std::sort(ready.begin(), ready.end(), [&](OpId a, OpId b) {
      return std::pair(-input.b_level_moved(a), a) < std::pair(-input.b_level_moved(b), b);
    });
    std::vector<torch::Tensor> logits;
    std::vector<std::int64_t> targets;
    for (const OpId op : ready) {
      if (std::find(ready.begin(), ready.end(), op) - ready.begin() >= static_cast<std::ptrdiff_t>(most) &&
          op != chosen)
        continue;
      state.observe(op);
      Seconds earliest = Costs::kNever;
      for (DeviceId device = 0; device < input.device_count(); ++device)
        if (state.may_go(device)) earliest = std::min(earliest, state.start(device));
      for (DeviceId device = 0; device < input.device_count(); ++device) {
        if (!state.may_go(device)) continue;
        const bool target =
            taught ? input.b_level_moved(op) == input.b_level_moved(ready.front()) && state.start(device) == earliest
                   : op == chosen && device == rollout.device_of_op()[op];
        if (target) targets.push_back(static_cast<std::int64_t>(logits.size()));
        logits.push_back(outputs.score[op] + head.logit(state, outputs, op, device));
      }
    }
    state.observe(chosen);
    if (!targets.empty()) {  // What the mask forbids is nothing to learn from.
      const torch::Tensor pairs = torch::log_softmax(torch::stack(logits), 0);
      const torch::Tensor found = torch::logsumexp(pairs.index({torch::tensor(targets)}), 0);
      result.loss = result.loss - weights.plc * found - weights.entropy * entropy(pairs);
      result.log_probability += found.item<double>();
      result.entropy += entropy(pairs).item<double>();
    }
    ready.erase(std::find(ready.begin(), ready.end(), chosen));
    state.place(chosen, rollout.device_of_op()[chosen], [&](OpId next) { ready.push_back(next); });
  }
  return result;
}

TEST(OurPolicyGradient, IsThatOfLibtorchFromTheLossToEveryParameter) {
  const auto world = mixed_world();
  const PolicyInput input(*world);
  const GnnShape shape;
  Gnn<double> network(shape, Rng(1));
  Rng rng(2);
  for (double& parameter : network.parameters()) parameter += rng.uniform(-0.1, 0.1);
  Embedding<double> embedding, gradient;
  network.embed(input, {}, embedding);
  Rollout<double> rollout(network.device_features(), network.head_shape(), true);
  rollout.bind(input);
  rollout.act(embedding, network.head(), Deciding::sampled, rng);

  const LossWeights weights = {.sel = 0.8, .plc = 1.2, .entropy = 0.3};
  Leaves leaves(network.parameters());
  const Outputs outputs = embed(input, shape, leaves);
  const torch::Tensor loss = loss_of(rollout, input, network.head_shape(), outputs, leaves, weights);
  ASSERT_TRUE(leaves.used_up());
  for (OpId op = 0; op < input.op_count(); ++op)
    EXPECT_NEAR(embedding.score[op], outputs.score[op].item<double>(), kTorchTolerance);
  loss.backward();

  gradient.resize(input.op_count(), kBlock);
  rollout.backward(network.head(), weights, gradient, network.head_gradient());
  network.backward(gradient);
  leaves.expect_gradient(network.gradients());
}

// An episode of a joint policy that looks at `most` ops: decided by lot, told what to do, or taught.
enum class Told : std::uint8_t { nothing, decisions, teacher };
void expect_joint_gradient(std::size_t most, Told told) {
  const auto world = mixed_world();
  const PolicyInput input(*world);
  const GnnShape shape{.candidates = most};
  Gnn<double> network(shape, Rng(1));
  Rng rng(2);
  for (double& parameter : network.parameters()) parameter += rng.uniform(-0.1, 0.1);
  Embedding<double> embedding, gradient;
  network.embed(input, {}, embedding);
  JointRollout<double> rollout(network.device_features(), network.head_shape(), most, true);
  rollout.bind(input);
  if (told == Told::nothing) rollout.act(embedding, network.head(), Deciding::sampled, rng);
  if (told == Told::teacher) rollout.imitate(embedding, network.head(), TeacherRule::critical_path, rng);
  if (told == Told::decisions) {
    // Op 2 has the largest b-level and comes last of the sources; op 5, which is pinned to device 1, is forbidden.
    rollout.follow(embedding, network.head(), std::vector<OpId>{1, 0, 3, 2, 4, 5, 6, 7, 8, 9},
                   std::vector<DeviceId>{0, 1, 1, 2, 0, 0, 1, 2, 1, 0});
  }
  const LossWeights weights = {.plc = 1.2, .entropy = 0.3};
  Leaves leaves(network.parameters());
  const Outputs outputs = embed(input, shape, leaves);
  const JointLoss expected =
      joint_loss_of(rollout, most, told == Told::teacher, input, network.head_shape(), outputs, leaves, weights);
  ASSERT_TRUE(leaves.used_up());
  EXPECT_NEAR(rollout.log_probability(), expected.log_probability, kTorchTolerance);
  EXPECT_NEAR(rollout.entropy() * input.op_count(), expected.entropy, kTorchTolerance);
  expected.loss.backward();
  gradient.resize(input.op_count(), kBlock);
  rollout.backward(network.head(), weights, gradient, network.head_gradient());
  network.backward(gradient);
  leaves.expect_gradient(network.gradients());
}

TEST(TheJointPolicysGradient, IsThatOfLibtorch) { expect_joint_gradient(16, Told::nothing); }
TEST(TheJointPolicysGradient, IsThatOfLibtorchWithFewCandidates) { expect_joint_gradient(2, Told::nothing); }
TEST(TheJointPolicysGradient, IsThatOfLibtorchForGivenDecisions) { expect_joint_gradient(1, Told::decisions); }
TEST(TheJointPolicysGradient, IsThatOfLibtorchForTheSetsOfATeacher) { expect_joint_gradient(16, Told::teacher); }

TEST(OurHeadGradient, IsThatOfLibtorchWithAHiddenLayer) {
  const auto world = mixed_world();
  const PolicyInput input(*world);
  const HeadShape shape = {.width = kBlock, .hidden = 64};
  const std::vector<double> head = random_head<double>(shape, 1);
  const Embedding<double> embedding = random_embedding<double>(input.op_count(), kBlock, 2);
  Rollout<double> rollout(DeviceFeatureSet::improved, shape, true);
  rollout.bind(input);
  Rng rng(3);
  rollout.act(embedding, head.data(), Deciding::sampled, rng);

  const LossWeights weights = {.sel = 0.8, .plc = 1.2, .entropy = 0.3};
  const std::int64_t ops = input.op_count();
  Leaves current(embedding.current), placed(embedding.placed), producer(embedding.producer), score(embedding.score),
      flat_head(head);
  const Outputs outputs = {current.next({ops, kWidth}), placed.next({ops, kWidth}), producer.next({ops, kWidth}),
                           score.next({ops})};
  loss_of(rollout, input, shape, outputs, flat_head, weights).backward();

  Embedding<double> gradient;
  gradient.resize(input.op_count(), kBlock);
  std::vector<double> head_gradient(head.size(), 0.0);
  rollout.backward(head.data(), weights, gradient, head_gradient.data());
  current.expect_gradient(gradient.current);
  placed.expect_gradient(gradient.placed);
  producer.expect_gradient(gradient.producer);
  score.expect_gradient(gradient.score);
  flat_head.expect_gradient(head_gradient);
}

}  // namespace
}  // namespace doppler::test
