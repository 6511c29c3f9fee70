#pragma once

#include <algorithm>
#include <bit>

#include "doppler/sim/event_queue.h"
#include "doppler/sim/sim_tables.h"

namespace doppler {

// `fifo` and `ordered` with free links need no clock: ops are taken in an order in which every start time
// follows from what was taken before.
//
// fifo: in order of (ready time, id). A device runs its ops in the order in which they became ready, so
//   start = max(ready, time its first slot is free).
// No op that becomes ready later can have an earlier ready time, because times are not negative.
//
// ordered: by rank, where an op whose producers were not all taken yet is passed over and taken as soon as
// they were (so any permutation is a valid priority, and none can deadlock).
//   start = max(ready, time the first slot is free, start of the op before it on the device).
// Internal to doppler/sim.
class ListLoop {
 public:
  explicit ListLoop(const SimTables& tables)
      : tables_(tables),
        states_(initial_states(tables)),
        clock_(tables),
        queue_(tables.op_count()),
        last_start_(tables.device_count()),
        order_(tables.problem().rules().discipline == Discipline::ordered ? tables.op_count() : 0) {}

  template <typename Recorder>
  Seconds run_fifo(std::span<const DeviceId> device_of_op, Recorder& recorder) {
    if (tables_.uniform() && tables_.most_slots() == 1) return fifo<true, true>(device_of_op.data(), recorder);
    return fifo<false, false>(device_of_op.data(), recorder);
  }

  template <typename Recorder>
  Seconds run_ordered(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> rank, Recorder& recorder) {
    for (OpId op = 0; op < tables_.op_count(); ++op) order_[rank[op]] = op;
    if (tables_.uniform() && tables_.most_slots() == 1)
      return ordered<true, true>(device_of_op.data(), rank.data(), recorder);
    return ordered<false, false>(device_of_op.data(), rank.data(), recorder);
  }

 private:
  // Without a branch: whether an edge leaves the device is a coin toss to the branch predictor.
  static Seconds value_if(bool condition, Seconds value) {
    return std::bit_cast<Seconds>(std::bit_cast<std::uint64_t>(value) & -static_cast<std::uint64_t>(condition));
  }

  // Tells the consumers of `op`, which ends at `end`; calls on_ready(consumer, ready time).
  template <bool Uniform, typename Recorder, typename OnReady>
  void finish(OpId op, Seconds end, const DeviceId* device_of_op, Recorder& recorder, OnReady on_ready) {
    const DeviceId device = device_of_op[op];
    for (const SimTables::Edge& edge : tables_.edges(op)) {
      const DeviceId target = device_of_op[edge.consumer];
      Seconds arrival = end;
      if constexpr (Uniform && !Recorder::kRecords) {
        arrival += value_if(target != device, edge.transfer);
      } else if (target != device) {
        arrival += tables_.transfer_time<Uniform>(edge, device, target);
        recorder.transfer(edge.tensor, device, target, 0, end, end, arrival);
      }
      OpState& consumer = states_[edge.consumer];
      consumer.ready = std::max(consumer.ready, arrival);
      if (--consumer.pending == 0) on_ready(edge.consumer, consumer.ready);
    }
  }

  template <bool Uniform, bool OneSlot, typename Recorder>
  Seconds fifo(const DeviceId* device_of_op, Recorder& recorder) {
    clock_.clear();
    for (const OpId op : tables_.sources()) queue_.push(0.0, op);
    Seconds makespan = 0;
    while (!queue_.empty()) {
      const EventQueue::Entry entry = queue_.pop();
      const OpId op = entry.id;
      const Seconds ready = entry.time;
      states_[op] = {0.0, tables_.op(op).in_degree};
      const DeviceId device = device_of_op[op];
      const std::uint32_t slot = OneSlot ? 0 : clock_.first_free(device);
      Seconds& free_at = OneSlot ? clock_.only_slot(device) : clock_.free_at(device, slot);
      const Seconds start = std::max(free_at, ready);
      const Seconds end = start + tables_.op_time<Uniform>(op, device);
      free_at = end;
      makespan = std::max(makespan, end);
      recorder.execution(op, device, slot, ready, start, end);
      finish<Uniform>(op, end, device_of_op, recorder, [&](OpId consumer, Seconds at) { queue_.push(at, consumer); });
    }
    return makespan;
  }

  template <bool Uniform, bool OneSlot, typename Recorder>
  Seconds ordered(const DeviceId* device_of_op, const std::uint32_t* rank, Recorder& recorder) {
    clock_.clear();
    std::fill(last_start_.begin(), last_start_.end(), 0.0);
    Seconds makespan = 0;
    std::uint32_t position = 0;  // ranks below it were taken or passed over
    while (true) {
      OpId op = 0;
      if (!queue_.empty()) [[unlikely]] {
        op = order_[queue_.pop().id];
      } else {
        if (position == tables_.op_count()) return makespan;
        op = order_[position++];
        if (states_[op].pending > 0) continue;
      }
      const DeviceId device = device_of_op[op];
      const std::uint32_t slot = OneSlot ? 0 : clock_.first_free(device);
      Seconds& free_at = OneSlot ? clock_.only_slot(device) : clock_.free_at(device, slot);
      const Seconds ready = states_[op].ready;
      Seconds start = std::max(free_at, ready);
      if constexpr (!OneSlot) last_start_[device] = start = std::max(start, last_start_[device]);
      const Seconds end = start + tables_.op_time<Uniform>(op, device);
      free_at = end;
      makespan = std::max(makespan, end);
      states_[op] = {0.0, tables_.op(op).in_degree};
      recorder.execution(op, device, slot, ready, start, end);
      finish<Uniform>(op, end, device_of_op, recorder, [&](OpId consumer, Seconds) {
        // Passed over before: its rank is its key, so that the smallest goes first.
        if (rank[consumer] < position) queue_.push(0.0, rank[consumer]);
      });
    }
  }

  const SimTables& tables_;
  std::vector<OpState> states_;
  SlotClock clock_;
  EventQueue queue_;
  std::vector<Seconds> last_start_;
  std::vector<OpId> order_;
};

}  // namespace doppler
