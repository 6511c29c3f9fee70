// Placeto's network against libtorch's autograd, in double precision. Messages are passed from the beginning at every
// step here, so that this is also what holds the versions of placeto_input.h to their meaning.

#include <torch/torch.h>

#include "tests/learn/placeto_support.h"
#include "tests/learn/torch_leaves.h"

namespace doppler::test {
namespace {

constexpr std::int64_t kPlacetoWidth = 32;

struct DirectionLeaves {
  torch::Tensor say, say_bias, hear, part;
};

// Row v holds 1 / (number of neighbours) for each neighbour, or for each that is on v's device.
torch::Tensor neighbour_matrix(const PlacetoInput& input, bool producers, std::span<const DeviceId> device, bool near) {
  const std::int64_t nodes = input.node_count();
  torch::Tensor matrix = torch::zeros({nodes, nodes}, torch::kFloat64);
  for (std::uint32_t node = 0; node < input.node_count(); ++node) {
    const OpId op = input.op(node);
    for (const auto& edge : producers ? input.ops().producers(op) : input.ops().consumers(op))
      matrix[node][input.node_of_op(edge.op)] = 1.0;  // two tensors between two ops are one edge
  }
  matrix = matrix / matrix.sum(1, true).clamp_min(1);
  for (std::uint32_t node = 0; near && node < input.node_count(); ++node)
    for (std::uint32_t other = 0; other < input.node_count(); ++other)
      if (device[node] != device[other]) matrix[node][other] = 0.0;
  return matrix;
}

// Whether there is a path, by brute force.
bool reaches(const PlacetoInput& input, std::uint32_t from, std::uint32_t to) {
  std::vector<char> reached(input.node_count(), 0);
  reached[from] = 1;
  for (std::uint32_t node = from; node < input.node_count(); ++node)
    for (const auto& edge : input.ops().producers(input.op(node)))
      if (reached[input.node_of_op(edge.op)]) reached[node] = 1;
  return from != to && reached[to] != 0;
}

torch::Tensor placeto_loss_of(const PlacetoLoss& episode, Leaves& leaves) {
  const PlacetoInput& input = episode.input;
  const std::int64_t nodes = input.node_count(), devices = input.device_count();
  const auto features =
      torch::tensor(std::vector<double>(input.features().begin(), input.features().end()), torch::kFloat64)
          .view({nodes, static_cast<std::int64_t>(kNodeFeatureCount)});
  const auto seen =
      torch::tensor(std::vector<double>(episode.features.begin(), episode.features.end()), torch::kFloat64)
          .view({nodes, devices, static_cast<std::int64_t>(kPlacetoFeatureCount)});
  const auto matrix = [&](std::int64_t rows, std::int64_t columns) { return leaves.next({rows, columns}); };
  const torch::Tensor w1 = matrix(kNodeFeatureCount, kPlacetoWidth), b1 = matrix(1, kPlacetoWidth),
                      w2 = matrix(kPlacetoWidth, kPlacetoWidth), b2 = matrix(1, kPlacetoWidth),
                      visited = matrix(1, kPlacetoWidth);
  std::vector<DirectionLeaves> directions;
  for (int i = 0; i < 2; ++i) {
    const torch::Tensor say = matrix(kPlacetoWidth, kPlacetoWidth), bias = matrix(1, kPlacetoWidth),
                        hear = matrix(2 * kPlacetoWidth, kPlacetoWidth);
    directions.push_back({say, bias, hear, matrix(kPlacetoWidth, 4 * kPlacetoWidth)});
  }
  const torch::Tensor wd = matrix(kPlacetoFeatureCount, kPlacetoWidth), bd = matrix(1, kPlacetoWidth),
                      output = leaves.next({kPlacetoWidth}), keep = leaves.next({});
  std::vector<DeviceId> device(input.start().begin(), input.start().end());
  torch::Tensor loss = torch::zeros({}, torch::kFloat64), was_visited = torch::zeros({nodes, 1}, torch::kFloat64);
  torch::Tensor parts;
  for (std::uint32_t step = 0; step < input.node_count(); ++step) {
    if (step == 0 || episode.network.shape().per_step) {
      const torch::Tensor own =
          torch::relu(torch::relu(features.matmul(w1) + b1).matmul(w2) + b2 + was_visited.matmul(visited));
      parts = torch::zeros({nodes, 4, kPlacetoWidth}, torch::kFloat64);
      for (const bool forward : {true, false}) {
        const DirectionLeaves& weights = directions[forward ? 0 : 1];
        const torch::Tensor all = neighbour_matrix(input, forward, device, false),
                            near = neighbour_matrix(input, forward, device, true);
        torch::Tensor x = own;
        for (std::size_t round = 0; round < episode.network.shape().rounds; ++round) {
          const torch::Tensor said = torch::relu(x.matmul(weights.say) + weights.say_bias);
          x = own + torch::relu(torch::cat({all.matmul(said), near.matmul(said)}, 1).matmul(weights.hear));
        }
        parts = parts + x.matmul(weights.part).view({nodes, 4, kPlacetoWidth});
      }
    }
    std::vector<torch::Tensor> logits;
    for (DeviceId d = 0; d < input.device_count(); ++d) {
      torch::Tensor sum = parts[step][3] + (seen[step][d].matmul(wd) + bd).squeeze(0);
      for (std::uint32_t other = 0; other < input.node_count(); ++other) {
        if (other == step || device[other] != d) continue;
        const int relation = reaches(input, other, step) ? 0 : reaches(input, step, other) ? 1 : 2;
        sum = sum + parts[other][relation] * (4.0 * static_cast<double>(devices) / static_cast<double>(nodes));
      }
      logits.push_back(torch::relu(sum).dot(output) + keep * seen[step][d][static_cast<std::int64_t>(kCurrentFeature)]);
    }
    const torch::Tensor log_p = torch::log_softmax(torch::stack(logits), 0);
    const auto decision = static_cast<std::int64_t>(episode.decisions[step]);
    loss = loss - episode.weights[step] * log_p[decision] + PlacetoLoss::kEntropy * (log_p.exp() * log_p).sum();
    // A group goes where its first op goes.
    const auto unit = input.ops().problem().unit(input.op(step));
    const bool first = std::ranges::all_of(unit, [&](OpId op) { return input.node_of_op(op) >= step; });
    for (const OpId op : unit)
      if (first || op == input.op(step)) device[input.node_of_op(op)] = episode.decisions[step];
    was_visited = was_visited.clone();  // The old one is part of what libtorch differentiates.
    was_visited[step] = 1.0;
  }
  return loss;
}

class PlacetosGradient : public testing::TestWithParam<bool> {};

TEST_P(PlacetosGradient, IsThatOfLibtorchFromTheLossToEveryParameter) {
  PlacetoLoss episode(GetParam());
  Leaves leaves(episode.network.parameters().values());
  const torch::Tensor loss = placeto_loss_of(episode, leaves);
  ASSERT_TRUE(leaves.used_up());
  EXPECT_NEAR(episode(), loss.item<double>(), kTorchTolerance);
  loss.backward();
  episode.backward();
  leaves.expect_gradient(episode.network.parameters().gradients());
}

INSTANTIATE_TEST_SUITE_P(Messages, PlacetosGradient, testing::Bool(),
                         [](const auto& test) { return test.param ? "AtEveryStep" : "OncePerEpisode"; });

}  // namespace
}  // namespace doppler::test
