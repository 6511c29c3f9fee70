// The network of GDP written once more with tensors, straight from the formulas of gdp_network.h, against the tape.

#include "doppler/learn/gdp/gdp_network.h"
#include "tests/learn/support.h"
#include "tests/learn/torch_leaves.h"

namespace doppler::test {
namespace {

torch::Tensor maxima_of(const torch::Tensor& z, std::span<const std::uint32_t> from,
                        std::span<const std::uint32_t> to) {
  std::vector<torch::Tensor> rows;
  for (std::int64_t v = 0; v < z.size(0); ++v) {
    std::vector<torch::Tensor> neighbours;
    for (std::size_t e = 0; e < to.size(); ++e)
      if (to[e] == v) neighbours.push_back(z[from[e]]);
    rows.push_back(neighbours.empty() ? torch::zeros_like(z[0]) : std::get<0>(torch::stack(neighbours).max(0)));
  }
  return torch::stack(rows);
}

torch::Tensor linear(Leaves& leaves, const torch::Tensor& x, std::int64_t columns) {
  const torch::Tensor weight = leaves.next({x.size(1), columns});
  return x.matmul(weight) + leaves.next({columns});
}

struct Norm {
  Norm(Leaves& leaves, std::int64_t width) : gain(leaves.next({width})), bias(leaves.next({width})) {}
  torch::Tensor operator()(const torch::Tensor& x) const { return torch::layer_norm(x, {x.size(1)}, gain, bias, 1e-5); }
  torch::Tensor gain, bias;
};

torch::Tensor attend(Leaves& leaves, const GdpShape& shape, const torch::Tensor& x) {
  const auto width = static_cast<std::int64_t>(shape.width), segment = static_cast<std::int64_t>(shape.segment);
  const torch::Tensor w_query = leaves.next({width, width}), w_key = leaves.next({width, width}),
                      w_value = leaves.next({width, width});
  std::vector<torch::Tensor> attended;
  for (std::int64_t begin = 0; begin < x.size(0); begin += segment) {
    const torch::Tensor own = x.slice(0, begin, std::min(begin + segment, x.size(0)));
    const torch::Tensor seen = begin == 0 ? own : torch::cat({x.slice(0, begin - segment, begin).detach(), own});
    std::vector<torch::Tensor> heads;
    for (std::int64_t at = 0; at < width; at += 32) {
      const auto head = [&](const torch::Tensor& a) { return a.slice(1, at, at + 32); };
      const torch::Tensor scores =
          head(own.matmul(w_query)).matmul(head(seen.matmul(w_key)).transpose(0, 1)) / std::sqrt(32.0);
      heads.push_back(torch::softmax(scores, 1).matmul(head(seen.matmul(w_value))));
    }
    attended.push_back(torch::cat(heads, 1));
  }
  const torch::Tensor output = linear(leaves, torch::cat(attended), width);
  const torch::Tensor first = Norm(leaves, width)(x + output);
  const torch::Tensor hidden = torch::relu(linear(leaves, first, 4 * width));
  const torch::Tensor result = linear(leaves, hidden, width);
  return Norm(leaves, width)(first + result);
}

torch::Tensor logits_of(Leaves& leaves, const GdpShape& shape, const GdpInput& input) {
  const std::int64_t units = input.units().count(), devices = input.units().device_count();
  const auto width = static_cast<std::int64_t>(shape.width);
  const auto matrix = [&](std::span<const float> values) {
    return torch::tensor(std::vector<double>(values.begin(), values.end()), torch::kFloat64).view({units, -1});
  };
  torch::Tensor x = torch::relu(linear(leaves, matrix(input.features()), width));
  const Norm norm(leaves, width);
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    const torch::Tensor producers = maxima_of(torch::sigmoid(linear(leaves, x, width)), input.from(), input.to());
    const torch::Tensor consumers = maxima_of(torch::sigmoid(linear(leaves, x, width)), input.to(), input.from());
    x = x + torch::relu(linear(leaves, torch::cat({x, producers, consumers}, 1), width));
  }
  for (std::size_t layer = 0; layer < shape.layers; ++layer) x = attend(leaves, shape, x);
  const torch::Tensor vectors = leaves.next({64, width}), bias = leaves.next({64}), speed = leaves.next({1});
  return norm(x - x.mean(0, true)).matmul(vectors.slice(0, 0, devices).transpose(0, 1)) +
         speed * matrix(input.speeds()) + bias.slice(0, 0, devices);
}

TEST(TheGradientOfGdp, IsThatOfLibtorchWithMemoriesOfOtherSegments) {
  const auto world = mixed_world();
  const GdpInput input(*world);
  // Nine units: two whole segments and a short one, two heads.
  const GdpShape shape = {.width = 64, .layers = 2, .segment = 4};
  GdpNetwork<double> network(shape, Rng(1));
  Rng rng(2);
  for (double& parameter : network.parameters().values()) parameter += rng.uniform(-0.1, 0.1);
  Tape<double> tape;
  const auto logits = network.logits(tape, input);
  Leaves leaves(network.parameters().values());
  const torch::Tensor theirs = logits_of(leaves, shape, input);
  ASSERT_TRUE(leaves.used_up());
  torch::Tensor loss = torch::zeros({}, torch::kFloat64);
  const auto flat = theirs.reshape({-1});
  ASSERT_EQ(static_cast<std::size_t>(flat.numel()), tape.value(logits).size());
  for (std::size_t i = 0; i < tape.value(logits).size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    ASSERT_NEAR(tape.value(logits)[i], flat[at].item<double>(), kTorchTolerance) << i;
    const double weight = rng.uniform(-1, 1);
    tape.gradient(logits)[i] = weight;
    loss = loss + weight * flat[at];
  }
  loss.backward();
  tape.backward();
  leaves.expect_gradient(network.parameters().gradients());
}

}  // namespace
}  // namespace doppler::test
