#include "doppler/place/list/list_schedule.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/place/list/simple_placements.h"

namespace doppler {

ListSchedule::ListSchedule(const Problem& problem, const Budget& budget)
    : problem_(&problem),
      watch_(budget),
      memory_(problem),
      available_(problem.device_count(), 0.0),
      assigned_(problem.op_count(), 0),
      start_(problem.op_count(), 0.0),
      end_(problem.op_count(), 0.0) {
  for (DeviceId id = 0; id < problem.device_count(); ++id) slots_.emplace_back(problem.machine().device(id).slots);
  placement_.device_of_op.resize(problem.op_count());
  placement_.cause_of_op.resize(problem.op_count(), Cause::chosen);
  sequence_.reserve(problem.op_count());
}

Seconds ListSchedule::arrival(OpId op, DeviceId device) const {
  const Graph& graph = problem_->graph();
  const Costs& costs = problem_->costs();
  Seconds latest = 0;
  for (const TensorId tensor : graph.inputs(op)) {
    const OpId producer = graph.producer(tensor);
    latest = std::max(latest, end_[producer] + costs.transfer_time(tensor, placement_.device_of_op[producer], device));
  }
  return latest;
}

Seconds ListSchedule::inserted_start(OpId op, DeviceId device) const {
  const Seconds from = arrival(op, device), duration = problem_->costs().op_time(op, device);
  Seconds best = Costs::kNever;
  for (const IdleTime& slot : slots_[device]) best = std::min(best, slot.earliest(from, duration));
  return best;
}

void ListSchedule::place(OpId op, DeviceId device, Seconds start, Cause cause) {
  watch_.step(kStepsPerDevice);
  const Seconds duration = problem_->costs().op_time(op, device);
  std::vector<IdleTime>& slots = slots_[device];
  const auto slot = std::find_if(slots.begin(), slots.end(), [&](const IdleTime& candidate) {
    return candidate.earliest(start, duration) == start;
  });
  DOPPLER_CHECK(slot != slots.end(), "no slot of device {} is idle at {}", device, start);
  slot->reserve(start, duration);
  available_[device] = slots.front().end();
  for (const IdleTime& other : slots) available_[device] = std::min(available_[device], other.end());
  start_[op] = start;
  end_[op] = start + duration;
  sequence_.push_back(op);
  placement_.cause_of_op[op] = cause_of(*problem_, op, assigned_[op] ? Cause::colocated : cause);
  if (assigned_[op]) return;
  memory_.add(op, device);
  for (const OpId member : problem_->unit(op)) {
    placement_.device_of_op[member] = device;
    assigned_[member] = 1;
  }
}

Placement ListSchedule::finish(Order order) && {
  DOPPLER_CHECK(sequence_.size() == problem_->op_count(), "{} of {} ops are placed", sequence_.size(),
                problem_->op_count());
  // Stable: of two ops that start together one may be the other's input (zero costs), and was placed first.
  if (order == Order::started)
    std::stable_sort(sequence_.begin(), sequence_.end(), [&](OpId a, OpId b) { return start_[a] < start_[b]; });
  placement_.priority = ranks_from_order(sequence_);
  return std::move(placement_);
}

void place_where_it_finishes_first(ListSchedule& schedule, const Costs& costs, OpId op) {
  const auto [device, full] = schedule.choose(
      op, [&](DeviceId candidate) { return schedule.inserted_start(op, candidate) + costs.op_time(op, candidate); });
  schedule.place(op, device, schedule.inserted_start(op, device), full ? Cause::memory : Cause::earliest_finish);
}

ReadyCounter::ReadyCounter(const Graph& graph) : graph_(&graph), missing_(graph.op_count()) {
  for (OpId op = 0; op < graph.op_count(); ++op) missing_[op] = static_cast<std::uint32_t>(graph.inputs(op).size());
}

}  // namespace doppler
