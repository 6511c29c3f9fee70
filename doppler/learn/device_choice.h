#pragma once

#include <span>

#include "doppler/learn/policy.h"

namespace doppler {

// One decision between devices, for the policies that have a logit for each.
struct DeviceChoice {
  DeviceId device = 0;
  double log_probability = 0, entropy = 0;
};

// Chooses a device among those of the mask, at least one, by the softmax of their logits; `probability` has room for
// every device and is 0 where the mask is.
DeviceChoice choose(std::span<const float> logits, std::span<const char> mask, Deciding deciding, Rng& rng,
                    std::span<float> probability);
// The same where somebody else has decided for `device`.
DeviceChoice follow(std::span<const float> logits, std::span<const char> mask, DeviceId device,
                    std::span<float> probability);

// Adds the derivative of
//   loss.decisions · −log p(device) − loss.entropy · H
// by the logits, given the probabilities of the choice.
void add_gradient(std::span<const float> probability, DeviceId device, const EpisodeLoss& loss,
                  std::span<float> logit_gradient);

// PPO: the weight of −log p whose derivative is that of the clipped objective, for a decision of the given weight that
// is now `ratio` times as probable as when it was made. 0 if it has gone far enough.
double clipped_weight(double weight, double ratio, double clip);

}  // namespace doppler
