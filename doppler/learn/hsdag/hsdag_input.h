#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "doppler/learn/unit_features.h"

namespace doppler {

// What HSDAG is told about every op, in groups of columns that can be left out one by one. Numbers are standardised
// over the graph, so that none depends on units or on the number of ops.
inline constexpr auto kHsdagFeatures = std::to_array<FeatureGroup>({
    {"type",
     kKindColumns},  // The kind of the op, one of 16 by a hash of its name, so that files mean the same everywhere.
    {"degree", 10},  // The number of its producers, then of its consumers: 0, 1, 2, 3, or more.
    {"fractal", 1},  // Its fractal dimension.
    {"position", 2 * kWaves},  // Sine and cosine of its place in topological order, by eight wavelengths.
    {"shape", 5},              // The logs of its first output's last four extents, and of all its output bytes.
    {"index", 1},              // Its place in topological order.
});
inline constexpr std::size_t kHsdagColumns = [] {
  std::size_t columns = 0;
  for (const FeatureGroup& feature : kHsdagFeatures) columns += feature.columns;
  return columns;
}();

// What hsdag+ is told besides, op by op as it places them: the device features of DOPPLER (episode_state.h).
inline constexpr std::string_view kHsdagState = "state";

// Merging stops at this many clusters.
std::uint32_t fewest_clusters(std::uint32_t groups, DeviceId devices);

// A problem as HSDAG sees it: units of ops that must share a device, groups of units that are colocated before anything
// is learned, and features of both.
class HsdagInput final : public EncodedProblem {
 public:
  struct Options {
    Colocation rule = Colocation::chain;
    bool metis = false;  // Clusters of groups are METIS's, not the parsing network's.
    bool state = false;  // It can follow an episode op by op.
  };
  HsdagInput(const Problem& problem, const Options& options);

  // One level: its graph, a row of features for each node, and how much faster each device runs each node than the mean
  // device does, as a log.
  struct Level {
    LevelGraph graph;
    std::vector<float> features;
    std::vector<float> speeds;  // by node, then device
  };
  const Units& base() const { return base_; }
  const Problem& problem() const { return base_.problem(); }
  DeviceId device_count() const { return base_.device_count(); }
  const Level& units() const { return units_; }
  const Level& groups() const { return groups_; }
  std::span<const std::uint32_t> group_of_unit() const { return group_of_unit_; }
  // METIS's clusters of groups; empty unless asked for.
  const Grouping& clusters() const { return clusters_; }
  // The ops as DOPPLER sees them; only if asked for.
  const PolicyInput& ops() const { return *ops_; }
  std::span<const OpId> first_op() const { return base_.first_op(); }
  std::span<const char> allowed(std::uint32_t unit) const { return base_.allowed(unit); }
  std::span<const float> seconds() const { return base_.seconds(); }

 private:
  void write_features();
  void find_metis_clusters();

  Units base_;
  Level units_, groups_;
  std::vector<std::uint32_t> group_of_unit_;
  Grouping clusters_;
  std::optional<PolicyInput> ops_;
};

}  // namespace doppler
