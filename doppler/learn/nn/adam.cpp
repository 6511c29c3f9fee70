#include "doppler/learn/nn/adam.h"

#include <algorithm>

#include "doppler/base/error.h"

namespace doppler {

double Adam::step(std::span<float> parameters, std::span<float> gradients, double rate, double largest_norm) {
  constexpr double kMeanDecay = 0.9, kSquareDecay = 0.999, kFloor = 1e-8;
  DOPPLER_CHECK(parameters.size() == mean_.size() && gradients.size() == mean_.size(), "{} parameters",
                parameters.size());
  double norm = 0;
  for (const float gradient : gradients) norm += static_cast<double>(gradient) * static_cast<double>(gradient);
  norm = std::sqrt(norm);
  // One wild gradient must not end a long training: it is left out.
  if (!std::isfinite(norm)) {
    std::fill(gradients.begin(), gradients.end(), 0.0F);
    return norm;
  }
  ++steps_;
  const auto clip = static_cast<float>(norm > largest_norm ? largest_norm / norm : 1.0);
  const double mean_correction = 1 - std::pow(kMeanDecay, static_cast<double>(steps_));
  const double square_correction = 1 - std::pow(kSquareDecay, static_cast<double>(steps_));
  const auto scale = static_cast<float>(rate / mean_correction);
  const auto square_scale = static_cast<float>(1 / square_correction);
  for (std::size_t i = 0; i < mean_.size(); ++i) {
    const float gradient = clip * gradients[i];
    mean_[i] += static_cast<float>(1 - kMeanDecay) * (gradient - mean_[i]);
    square_[i] += static_cast<float>(1 - kSquareDecay) * (gradient * gradient - square_[i]);
    parameters[i] -= scale * mean_[i] / (std::sqrt(square_scale * square_[i]) + static_cast<float>(kFloor));
    gradients[i] = 0;
  }
  return norm;
}

}  // namespace doppler
