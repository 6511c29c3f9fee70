#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "doppler/budget.h"
#include "doppler/machine/jitter.h"
#include "doppler/problem.h"
#include "doppler/timeline.h"

namespace doppler {

// The problem's costs and edges, flattened for the loops of the simulator: one contiguous record per op and
// per edge, jitter already multiplied in. Internal to doppler/sim.
class SimTables {
 public:
  SimTables(const Problem& problem, const JitterDraw& draw);

  struct Op {
    Seconds time;  // on the only device class, if there is only one
    std::uint32_t edge_begin, edge_end;
    std::uint32_t in_degree;
  };
  struct Edge {
    Seconds transfer;  // on the only link class, if there is only one
    OpId consumer;
    TensorId tensor;
  };

  OpId op_count() const { return op_count_; }
  DeviceId device_count() const { return device_count_; }
  const Op& op(OpId id) const { return ops_[id]; }
  std::span<const Edge> edges(OpId id) const {
    return {edges_.data() + ops_[id].edge_begin, edges_.data() + ops_[id].edge_end};
  }
  std::size_t edge_count() const { return edges_.size(); }
  std::span<const OpId> sources() const { return sources_; }
  unsigned slots(DeviceId device) const { return slots_[device]; }
  unsigned most_slots() const { return most_slots_; }
  const Problem& problem() const { return problem_; }

  // True if all devices and all links are alike. Hot loops are compiled for this case too, with Uniform =
  // true; Uniform = false serves both.
  bool uniform() const { return uniform_; }
  template <bool Uniform = false>
  Seconds op_time(OpId id, DeviceId device) const {
    if (Uniform || uniform_) return ops_[id].time;
    return op_times_[id * device_classes_ + device_class_[device]];
  }
  template <bool Uniform = false>
  Seconds transfer_time(const Edge& edge, DeviceId src, DeviceId dst) const {  // src != dst
    if (Uniform || uniform_) return edge.transfer;
    return transfer_times_[edge.tensor * link_classes_ + link_class_[src * slots_.size() + dst]];
  }

 private:
  Problem problem_;
  bool uniform_;
  std::size_t device_classes_, link_classes_;
  OpId op_count_;
  DeviceId device_count_;
  std::vector<Op> ops_;
  std::vector<Edge> edges_;
  std::vector<OpId> sources_;
  std::vector<unsigned> slots_;
  unsigned most_slots_ = 1;
  // Only filled if not uniform.
  std::vector<std::uint32_t> device_class_, link_class_;
  std::vector<Seconds> op_times_, transfer_times_;
};

// How far an op is from being ready. Loops reset an op's state when they start it, so that a run leaves the
// array as it found it and nothing is cleared between runs.
struct OpState {
  Seconds ready;  // latest arrival so far
  std::uint32_t pending;
};
std::vector<OpState> initial_states(const SimTables& tables);

// Loops report what happens to a recorder; this one forgets, and compiles to nothing.
struct NoRecorder {
  static constexpr bool kRecords = false;
  void execution(OpId, DeviceId, std::uint32_t, Seconds, Seconds, Seconds) {}
  void transfer(TensorId, DeviceId, DeviceId, std::uint32_t, Seconds, Seconds, Seconds) {}
};

// Keeps for every op when it ran, and what ran, or was copied, before it in its slot.
class ChainRecorder {
 public:
  static constexpr bool kRecords = true;
  static constexpr OpId kNone = std::numeric_limits<OpId>::max();
  struct Run {
    Seconds ready, start, end;
    OpId before;  // kNone: first in its slot
  };
  explicit ChainRecorder(const SimTables& tables)
      : stride_(tables.most_slots()), runs_(tables.op_count()), last_(std::size_t{stride_} * tables.device_count()) {}
  void clear() { std::fill(last_.begin(), last_.end(), kNone); }
  void execution(OpId op, DeviceId device, std::uint32_t slot, Seconds ready, Seconds start, Seconds end) {
    OpId& last = last_[std::size_t{device} * stride_ + slot];
    runs_[op] = {ready, start, end, last};
    last = op;
  }
  void transfer(TensorId, DeviceId, DeviceId, std::uint32_t, Seconds, Seconds, Seconds) {}
  // What runs next in the slot waited for a result of `producer` to be copied.
  void copying(OpId producer, DeviceId device, std::uint32_t slot) {
    last_[std::size_t{device} * stride_ + slot] = producer;
  }
  const Run& run(OpId op) const { return runs_[op]; }
  std::span<const OpId> last() const { return last_; }

 private:
  unsigned stride_;
  std::vector<Run> runs_;
  std::vector<OpId> last_;  // per slot
};

class TimelineRecorder {
 public:
  static constexpr bool kRecords = true;
  TimelineRecorder(Timeline& timeline, DeviceId devices, Watch& watch)
      : timeline_(timeline), watch_(watch), last_moved_(devices, std::numeric_limits<TensorId>::max()) {}
  void execution(OpId op, DeviceId device, std::uint32_t slot, Seconds ready, Seconds start, Seconds end) {
    watch_.step(kStepsPerOp);
    timeline_.executions.push_back({op, device, slot, ready, start, end});
  }
  // Loops report a transfer for each consumer; a tensor moves once per destination. All consumers of one
  // tensor are reported one after the other.
  void transfer(TensorId tensor, DeviceId src, DeviceId dst, std::uint32_t channel, Seconds queued, Seconds start,
                Seconds end) {
    if (last_moved_[dst] == tensor) return;
    last_moved_[dst] = tensor;
    timeline_.transfers.push_back({tensor, src, dst, channel, queued, start, end});
  }
  void copying(OpId, DeviceId, std::uint32_t) {}

 private:
  static constexpr std::uint64_t kStepsPerOp = 8;
  Timeline& timeline_;
  Watch& watch_;
  std::vector<TensorId> last_moved_;  // per destination
};

// When each slot of each device is free, for devices with one or several slots.
class SlotClock {
 public:
  explicit SlotClock(const SimTables& tables)
      : stride_(tables.most_slots()), free_at_(std::size_t{stride_} * tables.device_count()) {
    for (DeviceId id = 0; id < tables.device_count(); ++id) slots_.push_back(tables.slots(id));
    clear();
  }
  void clear() { std::fill(free_at_.begin(), free_at_.end(), 0.0); }
  // The slot that is free first; the lowest number among equals.
  std::uint32_t first_free(DeviceId device) const {
    if (stride_ == 1) return 0;
    const Seconds* row = &free_at_[std::size_t{device} * stride_];
    std::uint32_t best = 0;
    for (std::uint32_t slot = 1; slot < slots_[device]; ++slot)
      if (row[slot] < row[best]) best = slot;
    return best;
  }
  Seconds& only_slot(DeviceId device) { return free_at_[device]; }  // if no device has more than one
  Seconds& free_at(DeviceId device, std::uint32_t slot) { return free_at_[std::size_t{device} * stride_ + slot]; }

 private:
  unsigned stride_;
  std::vector<unsigned> slots_;
  std::vector<Seconds> free_at_;
};

}  // namespace doppler
