#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "doppler/learn/policy.h"

namespace doppler {

// What a policy is told about every op before an episode begins. Times are relative to the graph's own means or to
// PolicyInput::horizon(), so that a policy does not depend on units, and no column depends on the number of ops.
inline constexpr auto kNodeFeatures = std::to_array<std::string_view>({
    "log_compute",                         // The log of the next.
    "compute",                             // The op's mean time, over the mean of all ops.
    "log_communication",                   // The log of the next.
    "communication",                       // The mean transfer time of its outputs, over the mean of all ops.
    "log_communication_to_compute",        // The log of the op's transfer time over its mean time.
    "b_level",                             // The longest path to an exit without transfers, over the horizon.
    "t_level",                             // The longest path from an entry without transfers, over the horizon.
    "log_b_level_moved",                   // The log of the first with a transfer on every edge, over the horizon.
    "log_t_level_moved",                   // The log of the second with a transfer on every edge, over the horizon.
    "log_inputs",                          // The log of the number of edges in.
    "log_consumers",                       // The log of the number of edges out.
    "depth",                               // The number of edges from a source, over the largest.
    "position",                            // The place in the topological order, from 0 to 1.
    "source",                              // 1 if it reads nothing.
    "sink",                                // 1 if nobody reads it.
    "devices",                             // The number of devices, in eighths.
    "parallelism",                         // The work per device over the horizon, which is the same for all ops.
    "log_graph_communication_to_compute",  // The log of the graph's ratio, which is the same for all ops.
    "time_spread",                         // The log of its time on the slowest device over that on the fastest.
    "allowed_devices",                     // The share of the devices that may run it.
    "memory",                              // Its footprint over the mean capacity.
    "memory_pressure",                     // All footprints over all capacity.
});
inline constexpr std::size_t kNodeFeatureCount = kNodeFeatures.size();

// A problem as the policies see it: features per op, flat adjacency, and the scales of the features that change during
// an episode (episode_state.h).
class PolicyInput final : public EncodedProblem {
 public:
  // Throws OutOfTime if `watch` does.
  explicit PolicyInput(const Problem& problem, Watch watch = Watch(Budget::unlimited()));

  const Problem& problem() const { return problem_; }
  OpId op_count() const { return problem_.op_count(); }
  DeviceId device_count() const { return problem_.device_count(); }

  // The other end of an edge, with the tensor that moves along it and its mean transfer time.
  struct Edge {
    OpId op;
    TensorId tensor;
    float weight;
  };
  std::span<const Edge> producers(OpId op) const { return slice(producers_, producer_begin_, op); }
  std::span<const Edge> consumers(OpId op) const { return slice(consumers_, consumer_begin_, op); }

  // Row by row, op_count() × kNodeFeatureCount.
  std::span<const float> node_features() const { return node_features_; }

  // What a good placement takes, about: the larger of the critical path by mean times and the work spread over all
  // devices. It is no bound where devices differ.
  Seconds horizon() const { return horizon_; }
  Seconds mean_compute() const { return mean_compute_; }
  Seconds b_level(OpId op) const { return b_level_[op]; }              // Without transfers.
  Seconds b_level_moved(OpId op) const { return b_level_moved_[op]; }  // With a transfer on every edge.
  // The sum of the weights of the other inputs of the op's consumers.
  float coparents(OpId op) const { return coparents_[op]; }

  // As many clusters as devices, of about equal work, with little moved between them (METIS): which one an op is in. A
  // policy that builds a placement op by op sees by them what belongs together though it is not connected yet.
  std::uint32_t cluster(OpId op) const { return cluster_[op]; }

  // How near two devices are: 1 for a device and itself, 0 for the slowest link, by the time of a mean tensor.
  float nearness(DeviceId a, DeviceId b) const { return nearness_[a * device_count() + b]; }
  // True if all different devices are equally far, so that nearness is 1 or 0.
  bool uniform_links() const { return uniform_links_; }

 private:
  static std::span<const Edge> slice(const std::vector<Edge>& edges, const std::vector<std::uint32_t>& begin, OpId op) {
    return {edges.data() + begin[op], edges.data() + begin[op + 1]};
  }
  void lay_out_edges();
  void measure(Watch& watch);
  void fill_features(Watch& watch);
  void measure_links(Watch& watch);
  void find_clusters(Watch& watch);

  Problem problem_;
  std::vector<Edge> producers_, consumers_;
  std::vector<std::uint32_t> producer_begin_, consumer_begin_;
  std::vector<Seconds> b_level_, t_level_, b_level_moved_, t_level_moved_, communication_;
  Seconds horizon_ = 0, mean_compute_ = 0, mean_communication_ = 0, work_per_device_ = 0;
  std::vector<float> node_features_, nearness_, coparents_;
  bool uniform_links_ = true;
  std::vector<std::uint32_t> cluster_;
};

}  // namespace doppler
