#include "doppler/place/simplify.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "doppler/base/error.h"
#include "doppler/bounds/relaxation.h"
#include "doppler/place/list/heft.h"
#include "doppler/place/list/simple_placements.h"

namespace doppler {
namespace {

std::vector<DeviceId> used_by(const Problem& problem, const std::vector<DeviceId>& device_of_op) {
  std::vector<bool> used(problem.device_count(), false);
  for (const DeviceId device : device_of_op) used[device] = true;
  std::vector<DeviceId> devices;
  for (DeviceId device = 0; device < problem.device_count(); ++device)
    if (used[device]) devices.push_back(device);
  return devices;
}

Bytes moved_bytes(const Graph& graph, TensorId tensor, const std::vector<DeviceId>& device_of_op) {
  const DeviceId home = device_of_op[graph.producer(tensor)];
  std::vector<DeviceId> destinations;
  for (const OpId reader : graph.consumers(tensor))
    if (device_of_op[reader] != home) destinations.push_back(device_of_op[reader]);
  std::sort(destinations.begin(), destinations.end());
  destinations.erase(std::unique(destinations.begin(), destinations.end()), destinations.end());
  return graph.bytes(tensor) * destinations.size();
}

class Simplifier {
 public:
  Simplifier(Objective& objective, Proposal found, const SimplifyOptions& options)
      : objective_(objective),
        problem_(objective.problem()),
        options_(options),
        best_(std::move(found)),
        left_(std::min(options.evaluations, options.budget.evaluations())) {
    limit_ = objective_.value(best_.placement) * (1 + options_.tolerance);
  }

  Proposal run() && {
    while (empty_a_device()) {
    }
    move_less();
    number_from_first();
    return std::move(best_);
  }

 private:
  bool exhausted() const { return left_ == 0 || options_.budget.out_of_time(); }

  // Whether the placement is good enough and fits in memory; then it is the new best.
  bool accept(std::vector<DeviceId> device_of_op) {
    if (exhausted()) return false;
    --left_;
    ++best_.evaluations;
    if (objective_.value(device_of_op, best_.placement.priority) > limit_) return false;
    Placement candidate = best_.placement;
    candidate.device_of_op = std::move(device_of_op);
    try {
      if (problem_.memory_limited() && !objective_.fits_in_memory(candidate, options_.budget)) return false;
    } catch (const OutOfTime&) {
      return false;
    }
    best_.placement = std::move(candidate);
    return true;
  }

  bool empty_a_device() {
    const std::vector<DeviceId>& current = best_.placement.device_of_op;
    std::vector<DeviceId> used = used_by(problem_, current);
    if (used.size() < 2 || exhausted()) return false;
    std::vector<Seconds> busy(problem_.device_count(), 0);
    for (OpId op = 0; op < problem_.op_count(); ++op) busy[current[op]] += problem_.costs().op_time(op, current[op]);
    std::stable_sort(used.begin(), used.end(), [&](DeviceId a, DeviceId b) { return busy[a] < busy[b]; });
    for (const DeviceId from : used) {
      for (auto to = used.rbegin(); to != used.rend(); ++to)
        if (*to != from && pour(from, *to)) return true;
      if (place_again(used, from)) return true;
    }
    return false;
  }

  // Moves everything from one device to another, if it may go there.
  bool pour(DeviceId from, DeviceId to) {
    std::vector<DeviceId> moved = best_.placement.device_of_op;
    for (OpId op = 0; op < problem_.op_count(); ++op) {
      if (moved[op] != from) continue;
      if (!problem_.allows(op, to)) return false;
      moved[op] = to;
    }
    return accept(std::move(moved));
  }

  // Asks HEFT for a placement on the used devices but one.
  bool place_again(const std::vector<DeviceId>& used, DeviceId without) {
    std::vector<DeviceId> closed;
    for (DeviceId device = 0; device < problem_.device_count(); ++device)
      if (device == without || std::find(used.begin(), used.end(), device) == used.end()) closed.push_back(device);
    try {
      const Problem smaller = problem_.without(closed);
      ExactObjective exact(smaller);
      MethodOptions heft_options;
      heft_options.budget = options_.budget;
      return accept(heft(smaller, exact, heft_options).placement.device_of_op);
    } catch (const InfeasibleError&) {
      return false;
    } catch (const OutOfTime&) {
      return false;
    }
  }

  // Moves units to a device that they share tensors with, as long as less is moved then.
  void move_less() {
    for (bool again = true; again && !exhausted();) {
      again = false;
      for_each_unit(problem_, [&](OpId op) {
        const std::set<DeviceId> others = neighbours(op);
        if (others.empty() || exhausted()) return;
        const std::vector<TensorId> touched = tensors_of(op);
        const Bytes now = moved_of(touched, best_.placement.device_of_op);
        for (const DeviceId device : others) {
          std::vector<DeviceId> changed = best_.placement.device_of_op;
          for (const OpId member : problem_.unit(op)) changed[member] = device;
          if (moved_of(touched, changed) >= now || !accept(std::move(changed))) continue;
          again = true;
          return;
        }
      });
    }
  }

  // The tensors that a unit reads or writes, each once.
  std::vector<TensorId> tensors_of(OpId unit) const {
    std::vector<TensorId> tensors;
    for (const OpId op : problem_.unit(unit)) {
      const auto inputs = problem_.graph().inputs(op);
      tensors.insert(tensors.end(), inputs.begin(), inputs.end());
      for (const TensorId tensor : problem_.graph().outputs(op)) tensors.push_back(tensor);
    }
    std::sort(tensors.begin(), tensors.end());
    tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
    return tensors;
  }

  Bytes moved_of(const std::vector<TensorId>& tensors, const std::vector<DeviceId>& device_of_op) const {
    Bytes total = 0;
    for (const TensorId tensor : tensors) total += moved_bytes(problem_.graph(), tensor, device_of_op);
    return total;
  }

  // The other devices that a unit reads from or is read on, and may go to.
  std::set<DeviceId> neighbours(OpId unit) const {
    const Graph& graph = problem_.graph();
    const std::vector<DeviceId>& device = best_.placement.device_of_op;
    std::set<DeviceId> found;
    for (const OpId op : problem_.unit(unit)) {
      for (const TensorId tensor : graph.inputs(op)) found.insert(device[graph.producer(tensor)]);
      for (const TensorId tensor : graph.outputs(op))
        for (const OpId reader : graph.consumers(tensor)) found.insert(device[reader]);
    }
    std::erase_if(found, [&](DeviceId to) { return to == device[unit] || !problem_.allows(unit, to); });
    return found;
  }

  // Of equal devices the first are used, in the order in which the graph comes to them. Their links may differ, and draws of times belong to devices, so the value is
  // asked again; devices that can be exchanged are tried next.
  void number_from_first() {
    std::vector<std::uint32_t> equal(problem_.device_count());
    for (DeviceId device = 0; device < problem_.device_count(); ++device)
      equal[device] = problem_.costs().device_class(device);
    if (!number_within(equal)) number_within(interchangeable_devices(problem_));
  }

  bool number_within(const std::vector<std::uint32_t>& kind) {
    std::vector<DeviceId> renamed(problem_.device_count());
    std::iota(renamed.begin(), renamed.end(), 0);
    std::vector<bool> taken(problem_.device_count(), false);
    std::vector<bool> seen(problem_.device_count(), false);
    for (const OpId op : problem_.graph().topological_order()) {
      const DeviceId device = best_.placement.device_of_op[op];
      if (seen[device]) continue;
      seen[device] = true;
      DeviceId first = 0;
      while (kind[first] != kind[device] || taken[first]) ++first;
      renamed[device] = first;
      taken[first] = true;
    }
    std::vector<DeviceId> changed = best_.placement.device_of_op;
    for (OpId op = 0; op < problem_.op_count(); ++op) {
      changed[op] = renamed[changed[op]];
      if (!problem_.allows(op, changed[op])) return false;
    }
    return changed == best_.placement.device_of_op || accept(std::move(changed));
  }

  Objective& objective_;
  const Problem& problem_;
  SimplifyOptions options_;
  Proposal best_;
  std::uint64_t left_;
  Seconds limit_ = 0;
};

}  // namespace

std::size_t used_devices(const Problem& problem, const Placement& placement) {
  return used_by(problem, placement.device_of_op).size();
}

Bytes moved_bytes(const Graph& graph, const std::vector<DeviceId>& device_of_op) {
  Bytes moved = 0;
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor) moved += moved_bytes(graph, tensor, device_of_op);
  return moved;
}

Proposal simplify(Objective& objective, Proposal found, const SimplifyOptions& options) {
  return Simplifier(objective, std::move(found), options).run();
}

}  // namespace doppler
