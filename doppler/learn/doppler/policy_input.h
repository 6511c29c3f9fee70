#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "doppler/problem.h"

namespace doppler {

// What a policy is told about every op before an episode begins. Times are relative to the graph's own means or to
// PolicyInput::horizon(), so that a policy does not depend on units, and no column depends on the number of ops.
inline constexpr auto kNodeFeatures = std::to_array<std::string_view>({
    "log_compute",
    "compute",  // mean time over the mean of all ops
    "log_communication",
    "communication",                 // mean transfer time of the outputs, over the mean of all ops
    "log_communication_to_compute",  // of this op
    "b_level",
    "t_level",  // without transfers, over the horizon
    "log_b_level_moved",
    "log_t_level_moved",  // with a transfer on every edge, over the horizon
    "log_inputs",
    "log_consumers",  // numbers of edges
    "depth",
    "position",  // 0 … 1; in edges from a source, in the topological order
    "source",
    "sink",                                // flags
    "devices",                             // eighths
    "parallelism",                         // work per device over the horizon, the same for all ops
    "log_graph_communication_to_compute",  // the same for all ops
    "time_spread",                         // log of slowest over fastest device for this op
    "allowed_devices",                     // share
    "memory",
    "memory_pressure",  // footprint over mean capacity; all footprints over all capacity
});
inline constexpr std::size_t kNodeFeatureCount = kNodeFeatures.size();

// A problem as the policies see it: features per op, flat adjacency, and the scales of the features that change during
// an episode (episode_state.h). Made once per problem.
class PolicyInput {
 public:
  explicit PolicyInput(const Problem& problem);

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

  // op_count() × kNodeFeatureCount
  std::span<const float> node_features() const { return node_features_; }

  // About what a good placement takes: the larger of the critical path by mean times and the work spread over all
  // devices. Not a bound where devices differ.
  Seconds horizon() const { return horizon_; }
  Seconds mean_compute() const { return mean_compute_; }
  Seconds b_level(OpId op) const { return b_level_[op]; }              // without transfers
  Seconds b_level_moved(OpId op) const { return b_level_moved_[op]; }  // with a transfer on every edge
  // The weights of the other inputs of the op's consumers.
  float coparents(OpId op) const { return coparents_[op]; }

  // How near two devices are: 1 for a device and itself, 0 for the slowest link, by the time of a mean tensor.
  float nearness(DeviceId a, DeviceId b) const { return nearness_[a * device_count() + b]; }
  // True if all different devices are equally far, so that nearness is 1 or 0.
  bool uniform_links() const { return uniform_links_; }

 private:
  static std::span<const Edge> slice(const std::vector<Edge>& edges, const std::vector<std::uint32_t>& begin, OpId op) {
    return {edges.data() + begin[op], edges.data() + begin[op + 1]};
  }
  void lay_out_edges();
  void measure();
  void fill_features();
  void measure_links();

  Problem problem_;
  std::vector<Edge> producers_, consumers_;
  std::vector<std::uint32_t> producer_begin_, consumer_begin_;
  std::vector<Seconds> b_level_, t_level_, b_level_moved_, t_level_moved_, communication_;
  Seconds horizon_ = 0, mean_compute_ = 0, mean_communication_ = 0, work_per_device_ = 0;
  std::vector<float> node_features_, nearness_, coparents_;
  bool uniform_links_ = true;
};

}  // namespace doppler
