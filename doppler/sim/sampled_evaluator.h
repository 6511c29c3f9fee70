#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "doppler/base/rng.h"
#include "doppler/sim/jitter_sample.h"

namespace doppler {

// Judges changes of one placement by the mean makespan over a few draws of the machine's jitter, and most of the bad
// ones by fewer: draws are raced.
//
// A change is acceptable if it raises the mean by at most r. After j of K draws the mean of the paired differences d to
// the current placement, under the same draws, estimates the rise with variance s²·(1/j − 1/K), where s² is the usual
// variance of such differences. The change is given up as soon as mean(d) − z·s·sqrt(1/j − 1/K) > r, and accepted only
// after all K. Allocates nothing between two draws.
class SampledEvaluator {
 public:
  // With fewer draws a search finds what suits those draws and no others.
  static constexpr std::size_t kDraws = 16;

  SampledEvaluator(const Problem& problem, Jitter jitter);

  // Draws, and draws anew: what is found by one set of draws is not worth as much as they say. To be called first.
  void draw(std::uint64_t stream);
  // Begins with a placement; returns its mean.
  Seconds reset(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority);
  // The mean of a changed placement if it is at most `limit`; it is the current one then. Otherwise infinity.
  Seconds change(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority, Seconds limit,
                 Rng& rng);
  // A chain of ops that explains the makespan under one of the draws.
  void critical_chain(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority, Rng& rng,
                      std::vector<OpId>& chain);

  // How many simulations there were in all.
  std::uint64_t simulations() const { return simulations_; }

 private:
  Problem problem_;
  Jitter jitter_;
  std::optional<JitterSample> sample_;   // none before the first draw
  std::vector<Seconds> current_, next_;  // the makespan of each draw
  Seconds mean_ = 0;
  double variance_;  // the usual variance of paired differences; infinite until one is known
  std::uint64_t simulations_ = 0;
};

}  // namespace doppler
