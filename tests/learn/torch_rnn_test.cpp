// The recurrent placer written once more with tensors, straight from the formulas of rnn_network.h and of the LSTM in
// nn/layers.h, against the tape.

#include "doppler/learn/rnn/rnn_network.h"
#include "tests/learn/support.h"
#include "tests/learn/torch_leaves.h"

namespace doppler::test {
namespace {

struct TorchLstm {
  TorchLstm(Leaves& leaves, std::int64_t inputs, std::int64_t size)
      : width(size),
        weights(leaves.next({inputs, 4 * size})),
        bias(leaves.next({4 * size})),
        recurrent(leaves.next({size, 4 * size})) {}
  // x is what the inputs add to the gates, bias included.
  void step(const torch::Tensor& x, torch::Tensor& h, torch::Tensor& c) const {
    const auto gates = (x + h.matmul(recurrent)).split(width, 0);
    c = torch::sigmoid(gates[1]) * c + torch::sigmoid(gates[0]) * torch::tanh(gates[2]);
    h = torch::sigmoid(gates[3]) * torch::tanh(c);
  }
  std::int64_t width;
  torch::Tensor weights, bias, recurrent;
};

TEST(TheGradientOfTheRecurrentPlacer, IsThatOfLibtorch) {
  const auto world = mixed_world();
  const RnnShape shape = {.width = 32, .groups = 6};
  const RnnInput input(*world, shape.groups);
  RnnNetwork<double> network(shape, Rng(1));
  Rng rng(2);
  for (double& parameter : network.parameters().values()) parameter += rng.uniform(-0.1, 0.1);
  const std::int64_t groups = input.group_count(), devices = input.device_count(), width = 32;
  ASSERT_EQ(groups, 6);
  const auto matrix = [&](std::span<const float> values) {
    return torch::tensor(std::vector<double>(values.begin(), values.end()), torch::kFloat64).view({groups, -1});
  };

  Leaves leaves(network.parameters().values());
  const TorchLstm encoder(leaves, static_cast<std::int64_t>(rnn_columns(shape.groups)), width);
  const TorchLstm decoder(leaves, width, width);
  const torch::Tensor turn = leaves.next({width, 4 * width}), key = leaves.next({width, width}),
                      embeddings = leaves.next({65, width}), outputs = leaves.next({64, 2 * width}),
                      speed = leaves.next({1});
  ASSERT_TRUE(leaves.used_up());
  torch::Tensor h = torch::zeros({width}, torch::kFloat64), c = h;
  std::vector<torch::Tensor> states;
  const torch::Tensor features = matrix(input.features()), speeds = matrix(input.speeds());
  for (std::int64_t group = 0; group < groups; ++group) {
    encoder.step(features[group].matmul(encoder.weights) + encoder.bias, h, c);
    states.push_back(h);
  }
  const torch::Tensor keys = torch::stack(states).matmul(key);
  torch::Tensor loss = torch::zeros({}, torch::kFloat64);

  Tape<double> encoder_tape, decoder_tape;
  std::vector<std::pair<Tape<double>::Matrix, std::vector<double>>> derivatives;
  std::int64_t last = 64;
  network.decode(decoder_tape, encoder_tape, network.encode(encoder_tape, input), [&](std::size_t group, auto found) {
    const auto at = static_cast<std::int64_t>(group);
    decoder.step(embeddings[last].matmul(decoder.weights) + decoder.bias + states[group].matmul(turn), h, c);
    const torch::Tensor attention = torch::softmax(keys.matmul(h) / std::sqrt(32.0), 0).matmul(keys);
    const torch::Tensor logits = outputs.slice(0, 0, devices).matmul(torch::cat({h, attention})) + speed * speeds[at];
    std::vector<double> weights;
    for (std::int64_t device = 0; device < devices; ++device) {
      EXPECT_NEAR(decoder_tape.value(found)[static_cast<std::size_t>(device)], logits[device].item<double>(),
                  kTorchTolerance);
      weights.push_back(rng.uniform(-1, 1));
      loss = loss + weights.back() * logits[device];
    }
    derivatives.emplace_back(found, weights);
    last = (at * 2 + 1) % devices;
    return static_cast<DeviceId>(last);
  });
  loss.backward();
  for (const auto& [logits, weights] : derivatives) std::ranges::copy(weights, decoder_tape.gradient(logits).begin());
  decoder_tape.backward();
  encoder_tape.backward();
  leaves.expect_gradient(network.parameters().gradients());
}

}  // namespace
}  // namespace doppler::test
