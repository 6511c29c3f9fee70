#include "doppler/place/list/simple_placements.h"

namespace doppler {
namespace {

DeviceId fastest_device(const Problem& problem, std::span<const OpId> unit) {
  DeviceId best = problem.devices(unit.front()).front();
  Seconds best_time = Costs::kNever;
  for (const DeviceId device : problem.devices(unit.front())) {
    Seconds time = 0;
    for (const OpId op : unit) time += problem.costs().op_time(op, device);
    if (time < best_time) best = device, best_time = time;
  }
  return best;
}

}  // namespace

Cause cause_of(const Problem& problem, OpId op, Cause cause) {
  if (problem.pinned(op)) return Cause::pinned;
  if (cause == Cause::colocated) return cause;
  return problem.devices(op).size() == 1 ? Cause::only_device : cause;
}

void assign_unit(const Problem& problem, Placement& placement, OpId op, DeviceId device, Cause cause) {
  for (const OpId member : problem.unit(op)) {
    placement.device_of_op[member] = device;
    placement.cause_of_op[member] = cause_of(problem, member, member == op ? cause : Cause::colocated);
  }
}

Placement empty_placement(const Problem& problem) {
  Placement placement;
  placement.device_of_op.resize(problem.op_count());
  placement.cause_of_op.resize(problem.op_count(), Cause::chosen);
  return placement;
}

Placement one_device(const Problem& problem, DeviceId device) {
  Placement placement = empty_placement(problem);
  for_each_unit(problem, [&](OpId op) {
    const DeviceId target = problem.allows(op, device) ? device : fastest_device(problem, problem.unit(op));
    assign_unit(problem, placement, op, target, Cause::chosen);
  });
  return placement;
}

Placement fill_in_order(const Problem& problem, std::span<const double> amount, std::span<const double> limit) {
  Placement placement = empty_placement(problem);
  std::vector<double> used(problem.device_count(), 0.0);
  DeviceId current = 0;
  for_each_unit(problem, [&](OpId op) {
    double total = 0;
    for (const OpId member : problem.unit(op)) total += amount[member];
    const auto has_room = [&](DeviceId device) { return used[device] + total <= limit[device]; };
    while (current + 1 < problem.device_count() && problem.allows(op, current) && !has_room(current)) ++current;
    DeviceId target = current;
    if (!problem.allows(op, current)) {
      const auto devices = problem.devices(op);
      target = devices.back();
      for (auto device = devices.rbegin(); device != devices.rend(); ++device)
        if (has_room(*device)) target = *device;
    }
    used[target] += total;
    assign_unit(problem, placement, op, target, Cause::fill_order);
  });
  return placement;
}

}  // namespace doppler
