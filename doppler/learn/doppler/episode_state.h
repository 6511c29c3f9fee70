#pragma once

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "doppler/learn/doppler/policy_input.h"
#include "doppler/place/memory.h"

namespace doppler {

// What a policy is told about every device when an op is to be placed. "Inputs" are those of the op, "co-parents" the
// other inputs of its consumers, "siblings" the other consumers of its inputs; shares are by transfer time and count a
// device that is near in part (PolicyInput::nearness). squash(x, y) = x / (x + y).
inline constexpr auto kDeviceFeatures = std::to_array<std::string_view>({
    "finish",                 // When the op would finish, minus the earliest finish on any device, over the horizon.
    "finish_squashed",        // The same, squashed.
    "finish_first",           // 1 where it would finish first.
    "load_minus_mean",        // The device's load minus the mean load, over the horizon.
    "available_minus_first",  // When the device is free, minus when the first is, over the horizon.
    "idle",                   // The gap before the op, squashed.
    "moved",                  // The transfer time of the op's inputs, squashed.
    "inputs_bytes",           // The share of the inputs that are here, by transfer time.
    "inputs_count",           // The share of the inputs that are here, by number.
    "coparents_of_all",       // The share of all co-parents that are here.
    "coparents_of_placed",    // The share of the placed co-parents that are here.
    "siblings",               // The share of the placed siblings that are here.
    "load",                   // The device's load over the horizon.
    "empty",                  // 1 where nothing was placed.
    "critical",               // The op's start here + its b-level - the horizon, over the horizon.
    "load_gap",               // The load above that of the least loaded device, squashed by the op's time.
    "slowness",               // The log of the op's time here over its mean.
    "memory",                 // The share of the capacity that is used with the op.
    "available",              // When the device is free, over the horizon.
    "arrival_squashed",       // When the last input arrives, minus the earliest on any device, squashed.
    "cluster",                // The share of the op's cluster (PolicyInput::cluster) that is here, of what is placed.
    "other_clusters",         // The share of the load that other clusters have brought.
});
inline constexpr std::size_t kDeviceFeatureCount = kDeviceFeatures.size();

// The five features of the published code, in its order, divided by the horizon instead of standardised over the
// devices (equal devices would all look like zeros), with a flag for "no input here".
inline constexpr auto kPaperDeviceFeatures = std::to_array<std::string_view>({
    "load",
    "inputs_load",
    "inputs_first_start",
    "inputs_last_end",
    "start",
    "inputs_any",
});

enum class DeviceFeatureSet : std::uint8_t { improved, paper };
std::size_t feature_count(DeviceFeatureSet set);

// The state of an episode: ops placed so far, with the times that list scheduling gives them (appended). Where links
// have channels, a transfer waits for those booked before it, and where the receiver copies, its copies keep it from
// computing: booked when the consumer is placed, each tensor once per destination. Everything is kept up to date as ops
// are placed, so that observing costs O(edges of the op × devices). Nothing is allocated except by bind(), and there
// only if the problem is larger than any before.
class EpisodeState {
 public:
  explicit EpisodeState(DeviceFeatureSet set) : set_(set), feature_count_(feature_count(set)) {}

  // Says of what problem the next episodes are; it must outlive them.
  void bind(const PolicyInput& input);
  void reset();
  const PolicyInput& input() const { return *input_; }
  // Calls on_ready(op) for the ops that were ready from the start, in id order.
  template <typename OnReady>
  void for_each_source(OnReady on_ready) const {
    for (OpId op = 0; op < input_->op_count(); ++op)
      if (input_->producers(op).empty()) on_ready(op);
  }

  // Looks at the devices for `op`, all of whose producers are placed. The other accessors then speak of it.
  void observe(OpId op);
  // True if the op may go there: the problem allows it, its colocation unit is not elsewhere, and there is memory left.
  // At least one device may have it; if every device is full, that is the one that is least so.
  bool may_go(DeviceId device) const { return may_go_[device]; }
  DeviceId choices() const { return choices_; }
  const float* features(DeviceId device) const { return features_.data() + device * feature_count_; }
  Seconds start(DeviceId device) const { return start_[device]; }
  Seconds finish(DeviceId device) const { return finish_[device]; }

  // Puts the observed op on a device and calls on_ready(op) for each op that is ready because of it.
  template <typename OnReady>
  void place(OpId op, DeviceId device, OnReady on_ready) {
    settle(op, device);
    for (const PolicyInput::Edge& edge : input_->consumers(op))
      if (--missing_[edge.op] == 0) on_ready(edge.op);
  }
  std::span<const DeviceId> device_of_op() const { return device_of_op_; }
  Seconds end(OpId op) const { return end_of_op_[op]; }  // The op must be placed.
  static constexpr DeviceId kUnplaced = std::numeric_limits<DeviceId>::max();

 private:
  void find_choices(OpId op);
  void time_devices(OpId op);
  void time_channels(OpId op);
  void time_copies(OpId op);
  void book_transfers(OpId op, DeviceId device);
  void sum_affinities(OpId op);
  void write_features(OpId op);
  void write_paper_features(OpId op);
  void settle(OpId op, DeviceId device);
  // Spreads shares over devices that are near.
  void spread(std::vector<float>& amount);

  const DeviceFeatureSet set_;
  const std::size_t feature_count_;
  const PolicyInput* input_ = nullptr;
  DeviceId devices_ = 0;

  // These describe the ops placed so far.
  std::vector<DeviceId> device_of_op_;  // An op that is not placed yet has kUnplaced.
  std::vector<char>
      assigned_;  // The op or another of its unit is placed, so its device is known. Empty without groups.
  std::vector<DeviceId> unit_device_;
  std::vector<std::uint32_t> missing_;
  std::vector<Seconds> start_of_op_, end_of_op_;
  std::vector<float> inflow_;   // Per op and device: the transfer times of its inputs that are there.
  std::vector<float> outflow_;  // Per op and device: the transfer times to its consumers that are there.
  std::vector<Seconds> slot_end_, available_, load_;
  // Where links are not free: when a tensor is on a device (tensor × device; kNever if nobody took it there), and when
  // a link has moved what was booked on it (source × destination).
  std::vector<Seconds> arrived_, link_free_;
  std::vector<std::uint32_t> slot_begin_;
  std::vector<Seconds> cluster_load_, cluster_total_;  // Cluster × device: its part of the load; and per cluster.
  std::vector<Bytes> parameter_bytes_;                 // Per device.
  std::optional<StaticMemory> empty_memory_, memory_;

  // These describe the observed op.
  std::vector<char> may_go_;
  DeviceId choices_ = 0;
  std::vector<Seconds> arrival_, start_, finish_, moved_;
  std::vector<Seconds> queue_;  // As link_free_, with the transfers of this op's earlier inputs.
  std::vector<float> inputs_, inputs_count_, coparents_, siblings_, spread_;
  std::vector<float> features_;
};

}  // namespace doppler
