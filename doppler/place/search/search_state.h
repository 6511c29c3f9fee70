#pragma once

#include <vector>

#include "doppler/base/rng.h"
#include "doppler/problem.h"

namespace doppler {

// A placement that a local search changes move by move: a device per op and an order of all ops (a
// topological one, so that it is also a schedule). Moves keep units together, stay on allowed devices and
// within the parameter memory of every device. Moves allocate nothing.
class SearchState {
 public:
  // `moves_order`: whether moves may change the order too.
  SearchState(const Problem& problem, bool moves_order);

  // Starts again from a placement. Without priorities the order is by b-level.
  void assign(const Placement& placement);
  // Takes the order from the start times of a simulated or real run.
  void assign_order(const std::vector<OpId>& order);

  std::span<const DeviceId> device_of_op() const { return device_of_op_; }
  std::span<const std::uint32_t> rank() const { return rank_; }
  std::span<const OpId> order() const { return order_; }

  // Moves begin with one of these ops with this probability, otherwise with any.
  void focus(std::span<const OpId> ops, double probability) {
    focus_.assign(ops.begin(), ops.end());
    focus_probability_ = focus_.empty() ? 0 : probability;
  }

  // Makes a random move; false if it would have changed nothing or is not allowed (then nothing did change).
  bool move(Rng& rng);
  // Takes back the last move.
  void undo();

  // What the last move touched: positions in the order, from the first to the last one affected.
  std::uint32_t first_touched() const { return first_touched_; }
  std::uint32_t last_touched() const { return last_touched_; }

 private:
  struct Change {
    OpId op;
    DeviceId before;
  };

  void touch(std::uint32_t position);
  bool set_device(OpId op, DeviceId device);
  void shift(std::uint32_t from, std::uint32_t to);
  bool fits_in_memory() const;

  // The moves; each returns false if it had nothing to do.
  bool one_op(Rng& rng);
  bool follow_neighbour(Rng& rng);
  bool cluster(Rng& rng);
  bool swap(Rng& rng);
  bool swap_window(Rng& rng);
  bool pull(Rng& rng);
  bool chain(Rng& rng);
  bool reorder(OpId op, Rng& rng);

  OpId any_op(Rng& rng) const { return rng.below(static_cast<std::uint32_t>(device_of_op_.size())); }
  OpId random_op(Rng& rng) const {
    if (focus_probability_ > 0 && rng.uniform() < focus_probability_)
      return focus_[rng.below(static_cast<std::uint32_t>(focus_.size()))];
    return any_op(rng);
  }
  DeviceId random_device(OpId op, Rng& rng) const;
  // The device of an op that `op` reads from or is read by; its own if there is none.
  DeviceId device_of_neighbour(OpId op, Rng& rng) const;
  std::span<const OpId> neighbours(OpId op) const {
    return {neighbours_.data() + begin_[op], neighbours_.data() + begin_[op + 1]};
  }
  std::span<const OpId> producers(OpId op) const { return neighbours(op).first(in_degree_[op]); }
  std::span<const OpId> consumers(OpId op) const { return neighbours(op).subspan(in_degree_[op]); }

  const Problem& problem_;
  const bool moves_order_;
  std::vector<OpId> neighbours_;  // of each op: its producers, then its consumers
  std::vector<std::uint32_t> begin_, in_degree_;
  std::vector<OpId> peers_;  // ops sorted into classes of equal depth, kind and time
  std::vector<std::uint32_t> peer_begin_, peer_class_;

  std::vector<DeviceId> device_of_op_;
  std::vector<std::uint32_t> rank_;
  std::vector<OpId> order_;
  std::vector<Bytes> parameter_bytes_;  // per device; empty if memory is not limited

  std::vector<Change> changes_;  // of the last move, to be undone
  std::uint32_t shifted_from_ = 0, shifted_to_ = 0;
  std::uint32_t first_touched_ = 0, last_touched_ = 0;
  bool allowed_ = true;                 // false once the move in progress met a device that is not allowed
  std::vector<std::uint32_t> visited_;  // stamps for cluster()
  std::uint32_t visit_ = 0;
  std::vector<OpId> focus_;
  double focus_probability_ = 0;
  std::vector<OpId> members_;  // of the cluster in progress
};

}  // namespace doppler
