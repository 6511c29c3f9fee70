#include "doppler/learn/rnn/rnn_input.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace doppler {

std::vector<FeatureGroup> rnn_feature_groups(std::size_t most_groups) {
  std::vector<FeatureGroup> result(kUnitFeatures.begin(), kUnitFeatures.end());
  result.push_back({"work", 1});
  result.push_back({"adjacency", 2 * most_groups});
  return result;
}

std::size_t rnn_columns(std::size_t most_groups) { return kUnitColumns + 1 + 2 * most_groups; }

RnnInput::RnnInput(const Problem& problem, std::size_t most_groups, Watch watch)
    : units_(problem), grouping_(colocated(units_.graph(), Colocation::chain)) {
  if (grouping_.group_count > most_groups) {
    for (std::uint32_t& group : grouping_.group_of_node)
      group = static_cast<std::uint32_t>(std::uint64_t{group} * most_groups / grouping_.group_count);
    grouping_.group_count = static_cast<std::uint32_t>(most_groups);
  }
  const DeviceId devices = device_count();
  watch.step(std::uint64_t{units_.count()} * devices);
  const std::vector<float> seconds =
      group_seconds(units_.seconds(), devices, grouping_.group_of_node, grouping_.group_count);
  speeds_ = relative_speeds(seconds, devices);
  allowed_.resize(std::size_t{group_count()} * devices);
  for (std::uint32_t unit = 0; unit < units_.count(); ++unit)
    for (DeviceId device = 0; device < devices; ++device)
      allowed_[std::size_t{group_of_unit()[unit]} * devices + device] |= units_.allowed(unit)[device];
  write_features(most_groups, seconds, watch);
}

void RnnInput::write_features(std::size_t most_groups, std::span<const float> seconds, Watch watch) {
  const std::size_t columns = rnn_columns(most_groups);
  const std::vector<float> means =
      group_means(unit_features(units_, watch), kUnitColumns, group_of_unit(), group_count());
  features_.assign(group_count() * columns, 0);
  for (std::uint32_t group = 0; group < group_count(); ++group) {
    float* row = std::copy_n(means.data() + group * kUnitColumns, kUnitColumns, features_.data() + group * columns);
    const auto times = seconds.subspan(std::size_t{group} * device_count(), device_count());
    *row = std::log(std::accumulate(times.begin(), times.end(), std::numeric_limits<float>::min()));
  }
  standardise(features_, columns, kUnitColumns);
  const LevelGraph groups = contracted(units_.graph(), group_of_unit(), group_count());
  for (const auto& [from, to] : groups.edges) {
    features_[to * columns + kUnitColumns + 1 + from] = 1;
    features_[from * columns + kUnitColumns + 1 + most_groups + to] = 1;
  }
}

}  // namespace doppler
