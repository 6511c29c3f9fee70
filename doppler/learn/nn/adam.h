#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace doppler {

// Adam (Kingma and Ba, 2015) with its usual constants, after clipping the gradient to a norm.
class Adam {
 public:
  explicit Adam(std::size_t parameters) : mean_(parameters), square_(parameters) {}

  // Moves the parameters against the gradients and clears those. Returns the norm before clipping.
  double step(std::span<float> parameters, std::span<float> gradients, double rate, double largest_norm);

  // These are what a checkpoint keeps.
  std::span<float> mean() { return mean_; }
  std::span<float> square() { return square_; }
  std::span<const float> mean() const { return mean_; }
  std::span<const float> square() const { return square_; }
  std::uint64_t steps() const { return steps_; }
  void set_steps(std::uint64_t steps) { steps_ = steps; }

 private:
  std::vector<float> mean_, square_;
  std::uint64_t steps_ = 0;
};

}  // namespace doppler
