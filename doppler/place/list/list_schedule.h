#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "doppler/place/list/idle_time.h"
#include "doppler/place/memory.h"
#include "doppler/problem.h"

namespace doppler {

// A schedule under construction, shared by the list schedulers: where and when each op placed so far runs.
//
// Transfers are a pure delay, as these methods assume in the literature, also where the rules say `channels`:
// the simulator then judges the placement by the real rules. (A tensor is moved once per destination, but
// without contention every consumer there sees the same arrival, so nothing needs to be remembered about it.)
class ListSchedule {
 public:
  // Construction of the schedule ends with OutOfTime when the budget does.
  ListSchedule(const Problem& problem, const Budget& budget);

  // Where `op` may go: the device of its colocation unit if one of its ops is placed, else all it is allowed
  // on.
  std::span<const DeviceId> devices(OpId op) const {
    return assigned_[op] ? std::span(&placement_.device_of_op[op], 1) : problem_->devices(op);
  }
  DeviceId device_of(OpId placed) const { return placement_.device_of_op[placed]; }
  bool fits(OpId op, DeviceId device) const { return assigned_[op] || memory_.fits(op, device); }

  // When the last input of `op` would be on `device`; all its producers are placed.
  Seconds arrival(OpId op, DeviceId device) const;
  // When a slot of the device has finished everything reserved on it.
  Seconds available(DeviceId device) const { return available_[device]; }
  Seconds appended_start(OpId op, DeviceId device) const { return std::max(arrival(op, device), available(device)); }
  // As above, but gaps that are long enough count too.
  Seconds inserted_start(OpId op, DeviceId device) const;

  struct Choice {
    DeviceId device;
    bool for_want_of_memory;  // a better device was full
  };
  // The device with the smallest score(device) among those with memory left (the first of equals); if all are
  // full, the one that is least so, and repair (memory.h) has to make room later.
  template <typename Score>
  Choice choose(OpId op, Score score);

  void place(OpId op, DeviceId device, Seconds start, Cause cause);

  // The priority handed to the runtime.
  enum class Order {
    placed,   // as placed
    started,  // by start time: what an insertion scheduler means
  };
  Placement finish(Order order) &&;

 private:
  static constexpr std::uint64_t kStepsPerDevice = 4;

  const Problem* problem_;
  Watch watch_;
  StaticMemory memory_;
  std::vector<std::vector<IdleTime>> slots_;  // per device
  std::vector<Seconds> available_;
  Placement placement_;
  std::vector<char> assigned_;  // the device is known: the op or another of its unit is placed
  std::vector<Seconds> start_, end_;
  std::vector<OpId> sequence_;  // as placed
};

// The step of HEFT and CPOP: onto the device where the op finishes earliest, gaps included.
void place_where_it_finishes_first(ListSchedule& schedule, const Costs& costs, OpId op);

// The ops whose producers are all placed, reported as they become so.
class ReadyCounter {
 public:
  explicit ReadyCounter(const Graph& graph);
  // Calls on_ready(op) for every op without inputs.
  template <typename OnReady>
  void start(OnReady on_ready) const {
    for (OpId op = 0; op < graph_->op_count(); ++op)
      if (missing_[op] == 0) on_ready(op);
  }
  template <typename OnReady>
  void placed(OpId op, OnReady on_ready) {
    for (const TensorId tensor : graph_->outputs(op))
      for (const OpId consumer : graph_->consumers(tensor))
        if (--missing_[consumer] == 0) on_ready(consumer);
  }

 private:
  const Graph* graph_;
  std::vector<std::uint32_t> missing_;
};

template <typename Score>
ListSchedule::Choice ListSchedule::choose(OpId op, Score score) {
  using Value = decltype(score(DeviceId{}));
  struct Best {
    DeviceId device;
    Value value;
  };
  watch_.step(kStepsPerDevice * devices(op).size());
  std::optional<Best> preferred, fitting;
  for (const DeviceId device : devices(op)) {
    const Value value = score(device);
    if (!preferred || value < preferred->value) preferred = Best{device, value};
    if ((!fitting || value < fitting->value) && fits(op, device)) fitting = Best{device, value};
  }
  if (!fitting) return {memory_.least_excess(op), true};
  return {fitting->device, fitting->device != preferred->device};
}

}  // namespace doppler
