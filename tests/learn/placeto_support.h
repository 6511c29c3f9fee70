#pragma once

#include "doppler/learn/placeto/placeto_network.h"
#include "tests/learn/support.h"

namespace doppler::test {

// An episode of Placeto on the mixed world with any decisions and any features of the devices, and the loss
//   Σ_steps weight_t · −log p(decision_t) − 0.3 H_t
// in double precision.
class PlacetoLoss {
 public:
  explicit PlacetoLoss(bool per_step)
      : network({.width = 32, .rounds = 2, .per_step = per_step}, Rng(1)),
        input("mixed", *mixed_world(), {.rounds = 2, .per_step = per_step, .most_rows = 100'000}) {
    Rng rng(2);
    for (double& parameter : network.parameters().values()) parameter += rng.uniform(-0.1, 0.1);
    for (std::uint32_t node = 0; node < input.node_count(); ++node) {
      decisions.push_back(rng.below(input.device_count()));
      weights.push_back(rng.uniform(-1, 1));
    }
    for (std::size_t i = 0; i < input.node_count() * input.device_count() * kPlacetoFeatureCount; ++i)
      features.push_back(static_cast<float>(rng.uniform(-1, 1)));
  }

  double operator()() {
    tape.clear();
    const auto parts = network.embed(tape, input, decisions, kept);
    PlacetoStand stand;
    stand.begin(input);
    question.clear();
    const std::size_t size = input.device_count() * kPlacetoFeatureCount;
    for (std::uint32_t step = 0; step < input.node_count(); ++step) {
      question.add(input, stand, step, std::span<const float>(features).subspan(step * size, size));
      stand.take(step, decisions[step]);
    }
    logits = network.logits(tape, parts, question);
    double loss = 0;
    for (std::uint32_t step = 0; step < input.node_count(); ++step) {
      const std::vector<double> p = probabilities(step);
      loss -= weights[step] * std::log(p[decisions[step]]) + kEntropy * entropy(p);
    }
    return loss;
  }
  // After the loss: adds its gradient to that of the network.
  void backward() {
    for (std::uint32_t step = 0; step < input.node_count(); ++step) {
      const std::vector<double> p = probabilities(step);
      for (DeviceId device = 0; device < p.size(); ++device)
        tape.gradient(logits)[step * p.size() + device] += weights[step] * (p[device] - (device == decisions[step])) +
                                                           kEntropy * p[device] * (std::log(p[device]) + entropy(p));
    }
    tape.backward();
  }

  static constexpr double kEntropy = 0.3;
  PlacetoNetwork<double> network;
  PlacetoInput input;
  std::vector<DeviceId> decisions;
  std::vector<double> weights;
  std::vector<float> features;

 private:
  std::vector<double> probabilities(std::uint32_t step) const {
    const auto row = tape.value(logits).subspan(step * input.device_count(), input.device_count());
    std::vector<double> p(row.begin(), row.end());
    double total = 0;
    for (double& value : p) total += value = std::exp(value);
    for (double& value : p) value /= total;
    return p;
  }
  static double entropy(const std::vector<double>& p) {
    double result = 0;
    for (const double value : p) result -= value * std::log(value);
    return result;
  }

  Tape<double> tape;
  PlacetoNetwork<double>::Kept kept;
  PlacetoNetwork<double>::Question question;
  PlacetoNetwork<double>::Matrix logits = {};
};

}  // namespace doppler::test
