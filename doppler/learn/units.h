#pragma once

#include <vector>

#include "doppler/learn/level_graph.h"
#include "doppler/learn/policy.h"

namespace doppler {

// Ops that must share a device, each such set as one: what policies decide on that have no order of ops. Units are
// numbered in topological order of their first op.
class Units {
 public:
  explicit Units(const Problem& problem);

  const Problem& problem() const { return problem_; }
  DeviceId device_count() const { return problem_.device_count(); }
  std::uint32_t count() const { return static_cast<std::uint32_t>(first_op_.size()); }
  const LevelGraph& graph() const { return graph_; }
  std::span<const std::uint32_t> unit_of_op() const { return unit_of_op_; }
  std::span<const OpId> first_op() const { return first_op_; }  // By unit.
  // 1 where the problem allows the unit on the device.
  std::span<const char> allowed(std::uint32_t unit) const {
    return std::span(allowed_).subspan(std::size_t{unit} * device_count(), device_count());
  }
  // The seconds of each unit on each device; 0 where it cannot run.
  std::span<const float> seconds() const { return seconds_; }
  std::span<const float> seconds(std::uint32_t unit) const {
    return std::span(seconds_).subspan(std::size_t{unit} * device_count(), device_count());
  }

 private:
  Problem problem_;
  LevelGraph graph_;
  std::vector<std::uint32_t> unit_of_op_;
  std::vector<OpId> first_op_;
  std::vector<char> allowed_;
  std::vector<float> seconds_;
};

// Puts every unit where it was decided to be, or, if it is not allowed or does not fit there, on the fastest device
// that can have it; if none has the room, on the one that lacks least. The episode has no order then.
void settle(const Units& units, std::span<const DeviceId> device_of_unit, Episode& episode);

// How much faster than the mean device each one runs each node, as a log, from the seconds of each node on each.
std::vector<float> relative_speeds(std::span<const float> seconds, DeviceId devices);
// The seconds of each group on each device, from those of its nodes.
std::vector<float> group_seconds(std::span<const float> seconds, DeviceId devices,
                                 std::span<const std::uint32_t> group_of_node, std::uint32_t group_count);

}  // namespace doppler
