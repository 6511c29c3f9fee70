#include "doppler/sim/sampled_evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace doppler {
namespace {

constexpr double kConfidence = 1;  // z: how many standard errors a change may still catch up
constexpr double kMemory = 0.99;   // of the running average of variances

}  // namespace

SampledEvaluator::SampledEvaluator(const Problem& problem, Jitter jitter)
    : problem_(problem),
      jitter_(std::move(jitter)),
      current_(kDraws),
      next_(kDraws),
      variance_(std::numeric_limits<double>::infinity()) {}

void SampledEvaluator::draw(std::uint64_t stream) {
  sample_.reset();  // Two sets of tables at once would be one too many.
  sample_.emplace(problem_, jitter_, kDraws, stream);
}

Seconds SampledEvaluator::reset(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority) {
  for (std::size_t draw = 0; draw < current_.size(); ++draw)
    current_[draw] = sample_->simulator(draw).makespan(device_of_op, priority);
  simulations_ += current_.size();
  return mean_ = std::accumulate(current_.begin(), current_.end(), 0.0) / static_cast<double>(current_.size());
}

Seconds SampledEvaluator::change(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority,
                                 Seconds limit, Rng& rng) {
  const std::size_t draws = current_.size();
  const Seconds rise = limit - mean_;
  const std::size_t first = rng.below(static_cast<std::uint32_t>(draws));
  double sum = 0, squares = 0;
  for (std::size_t done = 1; done <= draws; ++done) {
    const std::size_t draw = (first + done - 1) % draws;
    next_[draw] = sample_->simulator(draw).makespan(device_of_op, priority);
    ++simulations_;
    const Seconds difference = next_[draw] - current_[draw];
    sum += difference;
    squares += difference * difference;
    if (done == draws) break;
    const double left = 1.0 / static_cast<double>(done) - 1.0 / static_cast<double>(draws);
    if (sum / static_cast<double>(done) - kConfidence * std::sqrt(variance_ * left) > rise)
      return std::numeric_limits<Seconds>::infinity();
  }
  const double mean = sum / static_cast<double>(draws);
  const double variance = std::max(0.0, squares / static_cast<double>(draws) - mean * mean);
  variance_ = std::isinf(variance_) ? variance : kMemory * variance_ + (1 - kMemory) * variance;
  if (mean > rise) return std::numeric_limits<Seconds>::infinity();
  std::swap(current_, next_);
  return mean_ = std::accumulate(current_.begin(), current_.end(), 0.0) / static_cast<double>(draws);
}

void SampledEvaluator::critical_chain(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority,
                                      Rng& rng, std::vector<OpId>& chain) {
  const std::size_t draw = rng.below(static_cast<std::uint32_t>(current_.size()));
  sample_->simulator(draw).critical_chain(device_of_op, priority, chain);
  ++simulations_;
}

}  // namespace doppler
