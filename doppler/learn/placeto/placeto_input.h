#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "doppler/learn/doppler/episode_state.h"

namespace doppler {

// What Placeto is told about every device beside what DOPPLER is told (kDeviceFeatures): the placement that it improves
// is complete, so that ops that were not visited yet are somewhere too.
inline constexpr auto kPlacetoDeviceFeatures = std::to_array<std::string_view>({
    "current",          // 1 where the op is now.
    "consumers_now",    // The share of its consumers that are there now, by transfer time.
    "others_load_now",  // The load of the other ops there now minus the mean, over the horizon.
});
inline constexpr std::size_t kPlacetoFeatureCount = kDeviceFeatureCount + kPlacetoDeviceFeatures.size();
inline constexpr std::size_t kCurrentFeature = kDeviceFeatureCount;

// What another node is to the one that is visited.
enum class Relation : std::uint8_t { ancestor, descendant, parallel, self };
inline constexpr std::size_t kRelations = 4;

// Who hears whom in a pass of messages.
enum class Direction : std::uint8_t { forward, backward };  // from producers, from consumers
inline constexpr std::array kDirections = {Direction::forward, Direction::backward};

// A problem as Placeto sees it. Nodes are the ops by their place in topological order, so that step t visits node t.
//
// Messages are passed again after every step, or once. A visit changes a node and, by groups, the devices of a few
// others, so that after r rounds only nodes within r edges sound different. What a node says is therefore kept in
// versions: round r has a row for every node at moment 0, before the first step, and at moment t + 1 one for each node
// that sounds different after step t. Which these are does not depend on what was decided.
class PlacetoInput final : public EncodedProblem {
 public:
  struct Messages {
    std::size_t rounds = 1;
    bool per_step = false;
    std::size_t most_rows = 0;  // The number of versions that there is memory for.
  };
  // Throws InputError, beginning with `where`, if there are too many versions.
  PlacetoInput(const std::string& where, const Problem& problem, const Messages& messages);

  // One round in one direction. What a row hears are edges from the rows of the round before; before the first round
  // row v is node v that was not visited, and row n + v the same node visited.
  struct Round {
    std::vector<std::uint32_t> row_begin, edge_begin;  // By moment.
    std::vector<std::uint32_t> node;                   // By row.
    std::vector<std::uint32_t> own;                    // By row: the node's row before the first round.
    std::vector<std::uint32_t> from, to;               // By edge: rows of the round before, and of this one.
    std::vector<std::uint32_t> from_node;              // By edge.
    std::vector<float> share;                          // By edge: 1 / the number of edges to the row.
  };

  const PolicyInput& ops() const { return ops_; }
  std::uint32_t node_count() const { return ops_.op_count(); }
  DeviceId device_count() const { return ops_.device_count(); }
  OpId op(std::uint32_t node) const { return ops_.problem().graph().topological_order()[node]; }
  std::uint32_t node_of_op(OpId op) const { return node_of_op_[op]; }
  std::span<const float> features() const { return features_; }  // node × kNodeFeatureCount
  // Which nodes change their device when the node is visited: its whole group if it is the first of it.
  std::span<const std::uint32_t> moved_with(std::uint32_t node) const {
    return std::span(moved_).subspan(moved_begin_[node], moved_begin_[node + 1] - moved_begin_[node]);
  }
  Relation relation(std::uint32_t node, std::uint32_t other) const {
    if (node == other) return Relation::self;
    if (other < node) return is_ancestor(other, node) ? Relation::ancestor : Relation::parallel;
    return is_ancestor(node, other) ? Relation::descendant : Relation::parallel;
  }

  bool per_step() const { return per_step_; }  // Messages are passed at every step.
  std::size_t moments() const { return moments_; }
  std::span<const Round> rounds(Direction direction) const { return rounds_[static_cast<std::size_t>(direction)]; }

  // The placement that an episode begins with, by node.
  std::span<const DeviceId> start() const { return start_; }

 private:
  void find_ancestors();
  void find_groups();
  void lay_out_messages(const std::string& where, const Messages& messages);
  void lay_out(Direction direction, std::size_t rounds, std::size_t most_rows, const std::string& where);
  void find_start();
  bool is_ancestor(std::uint32_t node, std::uint32_t of) const {
    return (ancestors_[std::size_t{of} * words_ + node / 64] >> (node % 64) & 1) != 0;
  }

  PolicyInput ops_;
  std::vector<std::uint32_t> node_of_op_;
  std::vector<float> features_;
  std::vector<std::uint32_t> moved_begin_, moved_;
  std::size_t words_ = 0;
  std::vector<std::uint64_t> ancestors_;  // node × words_, a bit for every node
  bool per_step_ = false;
  std::size_t moments_ = 1;
  std::array<std::vector<Round>, kDirections.size()> rounds_;
  std::vector<DeviceId> start_;
};

// Where an episode stands: the placement as it is now, and which version of every node is valid.
class PlacetoStand {
 public:
  void begin(const PlacetoInput& input);
  // Takes the decision of a step.
  void take(std::uint32_t step, DeviceId device);

  std::span<const DeviceId> device() const { return device_; }                                 // by node
  std::span<const std::uint32_t> row(std::size_t direction) const { return row_[direction]; }  // by node, last round

 private:
  void update_rows(std::size_t moment);

  const PlacetoInput* input_ = nullptr;
  std::vector<DeviceId> device_;
  std::array<std::vector<std::uint32_t>, kDirections.size()> row_;
};

}  // namespace doppler
