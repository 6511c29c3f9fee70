// HSDAG's network against libtorch's autograd, in double precision: written once more with tensors, straight from the
// formulas of hsdag_network.h. Which clusters there are is taken from the network under test, since it has no gradient.

#include <torch/torch.h>

#include "doppler/learn/hsdag/hsdag_network.h"
#include "tests/learn/support.h"
#include "tests/learn/torch_leaves.h"

namespace doppler::test {
namespace {

constexpr std::int64_t kHsdagWidth = 32;

class Reference {
 public:
  Reference(const HsdagShape& shape, Leaves& leaves) : shape_(shape) {
    const std::int64_t features = kHsdagColumns, c = kHsdagWidth;
    for (const std::int64_t inputs : {features, c}) {
      input_.push_back(linear(leaves, inputs, c));
      input_norm_.push_back(norm(leaves));
    }
    twice_ = {linear(leaves, c, c), linear(leaves, c, c)};
    twice_norm_ = norm(leaves);
    once_ = linear(leaves, c, c);
    once_norm_ = norm(leaves);
    score_ = linear(leaves, c, c);
    score_norm_ = norm(leaves);
    score_weights_ = leaves.next({c});
    pre_ = linear(leaves, c, c);
    pre_norm_ = norm(leaves);
    post_ = linear(leaves, c, c);
    post_norm_ = norm(leaves);
    if (shape.variant == HsdagVariant::fine) {
      placer_ = {linear(leaves, c, c), linear(leaves, c, c)};
      below_ = {linear(leaves, c, c), linear(leaves, c, c)};
      leaves.next({1});  // The attraction enters when devices are drawn.
      wish_ = linear(leaves, c, kDeviceFeatureCount);
    } else {
      output_ = {linear(leaves, c, c), linear(leaves, c, features)};
      placer_ = {linear(leaves, features, 4 * c), linear(leaves, 4 * c, c)};
    }
    devices_ = leaves.next({HsdagNetwork<double>::kMostDevices, c});
    speed_ = leaves.next({1});
  }

  // The logits of every level that decides, fine to coarse; in the fine variant the wishes of the units come first.
  std::vector<torch::Tensor> logits(const HsdagInput& input, const HsdagInput::Level& first,
                                    const HsdagNetwork<double>::Parse& parse) const {
    LevelGraph graph = first.graph;
    const std::vector<double> features(first.features.begin(), first.features.end());
    torch::Tensor h = torch::tensor(features, torch::kFloat64).view({graph.node_count, -1});
    for (std::size_t i = 0; i < 2; ++i) h = torch::relu(apply(input_norm_[i], apply(input_[i], h)));
    const bool fine = shape_.variant == HsdagVariant::fine;
    torch::Tensor seconds = tensor_of(input.seconds(), input.device_count());
    if (!fine) seconds = member_matrix(input.group_of_unit(), graph.node_count).matmul(seconds);
    std::vector<torch::Tensor> result;
    for (std::size_t i = 0; i + 1 < parse.levels.size(); ++i) {
      const auto& parent = parse.levels[i].parent;
      const std::uint32_t groups = parse.levels[i + 1].node_count;
      const torch::Tensor adjacency = normalised(graph);
      const torch::Tensor g = apply(once_norm_, h + torch::relu(apply(once_, adjacency.matmul(h))));
      const torch::Tensor members = member_matrix(parent, groups);
      const torch::Tensor pooled = residual(post_, post_norm_, members.matmul(residual(pre_, pre_norm_, g)));
      if (fine && i == 0) result.push_back(apply(wish_, g));
      if (fine) result.push_back(device_logits(below_, g, seconds));
      h = fine && i == 0 ? pooled : pooled * factors(graph, adjacency, h, parent, groups);
      seconds = members.matmul(seconds);
      graph = contracted(graph, parent, groups);
    }
    result.push_back(device_logits(placer_, fine ? h : apply(output_[1], torch::relu(apply(output_[0], h))), seconds));
    return result;
  }

 private:
  using Pair = std::pair<torch::Tensor, torch::Tensor>;  // weights and bias, or gain and bias
  static Pair linear(Leaves& leaves, std::int64_t inputs, std::int64_t outputs) {
    const torch::Tensor weights = leaves.next({inputs, outputs});
    return {weights, leaves.next({outputs})};
  }
  static Pair norm(Leaves& leaves) {
    const torch::Tensor gain = leaves.next({kHsdagWidth});
    return {gain, leaves.next({kHsdagWidth})};
  }
  static torch::Tensor apply(const Pair& layer, const torch::Tensor& x) {
    if (layer.first.dim() == 2) return x.matmul(layer.first) + layer.second;
    return torch::layer_norm(x, {kHsdagWidth}, layer.first, layer.second, 1e-5);
  }
  static torch::Tensor residual(const Pair& layer, const Pair& norm, const torch::Tensor& x) {
    return apply(norm, x + apply(layer, x));
  }
  static torch::Tensor tensor_of(std::span<const float> values, DeviceId columns) {
    const std::vector<double> copy(values.begin(), values.end());
    return torch::tensor(copy, torch::kFloat64).view({-1, columns});
  }
  static torch::Tensor member_matrix(std::span<const std::uint32_t> group, std::uint32_t groups) {
    torch::Tensor matrix = torch::zeros({groups, static_cast<std::int64_t>(group.size())}, torch::kFloat64);
    for (std::size_t i = 0; i < group.size(); ++i) matrix[group[i]][static_cast<std::int64_t>(i)] = 1;
    return matrix;
  }
  static torch::Tensor normalised(const LevelGraph& graph) {
    torch::Tensor matrix = torch::eye(graph.node_count, torch::kFloat64);
    for (const auto& [u, v] : undirected_edges(graph)) matrix[u][v] = matrix[v][u] = 1;
    const torch::Tensor scale = matrix.sum(1).rsqrt();
    return matrix * scale.unsqueeze(0) * scale.unsqueeze(1);
  }
  // The mean score of the edges inside each cluster, and as published times their number in both directions.
  torch::Tensor factors(const LevelGraph& graph, const torch::Tensor& adjacency, const torch::Tensor& h,
                        std::span<const std::uint32_t> group, std::uint32_t groups) const {
    const torch::Tensor inner = torch::relu(apply(twice_[0], adjacency.matmul(h)));
    const torch::Tensor g = apply(twice_norm_, h + torch::relu(apply(twice_[1], adjacency.matmul(inner))));
    std::vector<std::vector<torch::Tensor>> inside(groups);
    for (const auto& [u, v] : undirected_edges(graph)) {
      if (group[u] != group[v]) continue;
      const torch::Tensor hidden = torch::relu(apply(score_norm_, apply(score_, (g[u] * g[v]).unsqueeze(0))));
      inside[group[u]].push_back(torch::sigmoid(hidden.squeeze(0).dot(score_weights_)));
    }
    std::vector<torch::Tensor> result;
    for (const auto& scores : inside) {
      if (scores.empty())
        result.push_back(torch::ones({}, torch::kFloat64));
      else if (shape_.variant == HsdagVariant::published)
        result.push_back(2 * torch::stack(scores).sum());
      else
        result.push_back(torch::stack(scores).mean());
    }
    return torch::stack(result).unsqueeze(1);
  }
  torch::Tensor device_logits(const std::vector<Pair>& placer, const torch::Tensor& x,
                              const torch::Tensor& seconds) const {
    const torch::Tensor query = apply(placer[1], torch::relu(apply(placer[0], x)));
    const torch::Tensor running = seconds > 0;
    const torch::Tensor mean = seconds.sum(1, true) / running.sum(1, true).clamp_min(1);
    const torch::Tensor speed = torch::where(running, (mean / seconds).log().clamp(-3, 3), torch::zeros_like(seconds));
    return query.matmul(devices_.slice(0, 0, seconds.size(1)).t()) + speed * speed_;
  }

  HsdagShape shape_;
  std::vector<Pair> input_, input_norm_, twice_, output_, placer_, below_;
  Pair wish_, twice_norm_, once_, once_norm_, score_, score_norm_, pre_, pre_norm_, post_, post_norm_;
  torch::Tensor score_weights_, devices_, speed_;
};

TEST(TheHsdagGradient, IsThatOfLibtorch) {
  // Speeds are computed in single precision on our side.
  constexpr double kClose = 1e-6;
  const auto world = mixed_world();
  for (const HsdagVariant variant : {HsdagVariant::flat, HsdagVariant::fine, HsdagVariant::published}) {
    HsdagNetwork<double> network({.variant = variant, .width = kHsdagWidth}, Rng(4));
    Rng rng(2);
    for (double& parameter : network.parameters().values()) parameter += rng.uniform(-0.1, 0.1);
    const HsdagInput input(*world, {});
    const auto& first = network.first_level(input);
    const std::vector<double> features(first.features.begin(), first.features.end());
    Tape<double> tape;
    const auto& parse = network.parse(tape, input, features, 3);
    Leaves leaves(network.parameters().values());
    const std::vector<torch::Tensor> expected = Reference(network.shape(), leaves).logits(input, first, parse);
    EXPECT_TRUE(leaves.used_up());
    torch::Tensor loss = torch::zeros({}, torch::kFloat64);
    std::size_t next = 0;
    const auto compare = [&](HsdagNetwork<double>::Matrix matrix) {
      const torch::Tensor row = expected[next++].contiguous().view({-1});
      ASSERT_EQ(static_cast<std::size_t>(row.numel()), tape.value(matrix).size());
      for (std::int64_t i = 0; i < row.numel(); ++i) {
        const double weight = rng.uniform(-1, 1);
        ASSERT_NEAR(row[i].item<double>(), tape.value(matrix)[static_cast<std::size_t>(i)], kClose);
        tape.gradient(matrix)[static_cast<std::size_t>(i)] += weight;
        loss = loss + weight * row[i];
      }
    };
    for (std::size_t i = 0; i < parse.levels.size(); ++i) {
      if (!parse.levels[i].decides) continue;
      if (variant == HsdagVariant::fine && i == 0) compare(parse.levels[i].wishes);
      compare(parse.levels[i].logits);
    }
    ASSERT_EQ(next, expected.size());
    tape.backward();
    loss.backward();
    leaves.expect_gradient(network.parameters().gradients(), kClose);
  }
}

}  // namespace
}  // namespace doppler::test
