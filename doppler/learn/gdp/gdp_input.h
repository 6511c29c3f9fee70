#pragma once

#include "doppler/learn/unit_features.h"

namespace doppler {

// A problem as GDP sees it: units in topological order, their features and their neighbours.
class GdpInput final : public EncodedProblem {
 public:
  explicit GdpInput(const Problem& problem);

  const Units& units() const { return units_; }
  std::span<const float> features() const { return features_; }  // By unit, kUnitColumns each.
  std::span<const float> speeds() const { return speeds_; }      // By unit, then device: relative_speeds().
  // The two ends of every edge.
  std::span<const std::uint32_t> from() const { return from_; }
  std::span<const std::uint32_t> to() const { return to_; }

 private:
  Units units_;
  std::vector<float> features_, speeds_;
  std::vector<std::uint32_t> from_, to_;
};

}  // namespace doppler
