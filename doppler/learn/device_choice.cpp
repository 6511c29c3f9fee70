#include "doppler/learn/device_choice.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/error.h"

namespace doppler {
namespace {

// Fills in the probabilities and returns the entropy. The masked softmax of one row.
double fill_probabilities(std::span<const float> logits, std::span<const char> mask, std::span<float> probability) {
  float largest = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < mask.size(); ++i)
    if (mask[i]) largest = std::max(largest, logits[i]);
  double total = 0;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    probability[i] = mask[i] ? std::exp(logits[i] - largest) : 0;
    total += static_cast<double>(probability[i]);
  }
  DOPPLER_CHECK(total > 0, "no device to choose from");
  double entropy = 0;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    probability[i] = static_cast<float>(static_cast<double>(probability[i]) / total);
    if (probability[i] > 0) entropy -= static_cast<double>(probability[i]) * std::log(probability[i]);
  }
  return entropy;
}

double log_of(float probability) {
  return std::log(std::max(static_cast<double>(probability), std::numeric_limits<double>::min()));
}

}  // namespace

DeviceChoice choose(std::span<const float> logits, std::span<const char> mask, Deciding deciding, Rng& rng,
                    std::span<float> probability) {
  DeviceChoice choice;
  choice.entropy = fill_probabilities(logits, mask, probability);
  const auto favourite = std::max_element(probability.begin(), probability.begin() + mask.size());
  choice.device = static_cast<DeviceId>(favourite - probability.begin());
  if (deciding == Deciding::sampled) {
    double left = rng.uniform();
    for (std::size_t i = 0; i < mask.size(); ++i) {
      if (probability[i] <= 0) continue;
      left -= static_cast<double>(probability[i]);
      if (left >= 0) continue;
      choice.device = static_cast<DeviceId>(i);
      break;
    }
  }
  choice.log_probability = log_of(probability[choice.device]);
  return choice;
}

DeviceChoice follow(std::span<const float> logits, std::span<const char> mask, DeviceId device,
                    std::span<float> probability) {
  const double entropy = fill_probabilities(logits, mask, probability);
  return {device, log_of(probability[device]), entropy};
}

void add_gradient(std::span<const float> probability, DeviceId device, const EpisodeLoss& loss,
                  std::span<float> logit_gradient) {
  double entropy = 0;
  for (const float p : probability)
    if (p > 0) entropy -= static_cast<double>(p) * std::log(p);
  for (std::size_t i = 0; i < probability.size(); ++i) {
    if (probability[i] <= 0) continue;
    const auto p = static_cast<double>(probability[i]);
    logit_gradient[i] +=
        static_cast<float>(loss.decisions * (p - (i == device ? 1 : 0)) + loss.entropy * p * (std::log(p) + entropy));
  }
}

double clipped_weight(double weight, double ratio, double clip) {
  const bool far_enough = weight > 0 ? ratio > 1 + clip : ratio < 1 - clip;
  return far_enough ? 0 : weight * ratio;
}

}  // namespace doppler
