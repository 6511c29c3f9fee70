#pragma once

#include "doppler/learn/unit_features.h"

namespace doppler {

// What the recurrent placer is told of each group of ops: the mean of what is known of its units, how much work it is,
// and which other groups it reads and is read by.
std::vector<FeatureGroup> rnn_feature_groups(std::size_t most_groups);
std::size_t rnn_columns(std::size_t most_groups);

// A problem as the recurrent placer sees it: at most `most_groups` groups of units, numbered in topological order of
// their first unit. Chains of units are groups; if these are too many, as many as needed that follow one another are
// joined, all groups the same number of chains but for rounding.
class RnnInput final : public EncodedProblem {
 public:
  // Throws OutOfTime if `watch` does.
  RnnInput(const Problem& problem, std::size_t most_groups, Watch watch = Watch(Budget::unlimited()));

  const Units& units() const { return units_; }
  DeviceId device_count() const { return units_.device_count(); }
  std::uint32_t group_count() const { return grouping_.group_count; }
  std::span<const std::uint32_t> group_of_unit() const { return grouping_.group_of_node; }
  std::span<const float> features() const { return features_; }  // By group, rnn_columns() each.
  std::span<const float> speeds() const { return speeds_; }      // By group, then device: relative_speeds().
  // 1 where a unit of the group is allowed.
  std::span<const char> allowed(std::uint32_t group) const {
    return std::span(allowed_).subspan(std::size_t{group} * device_count(), device_count());
  }

 private:
  void write_features(std::size_t most_groups, std::span<const float> seconds, Watch watch);

  Units units_;
  Grouping grouping_;
  std::vector<float> features_, speeds_;
  std::vector<char> allowed_;
};

}  // namespace doppler
