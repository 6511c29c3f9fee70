#include "doppler/place/memory.h"

#include <algorithm>
#include <set>

#include "doppler/base/error.h"
#include "doppler/bounds/relaxation.h"
#include "doppler/place/list/simple_placements.h"

namespace doppler {
namespace {

constexpr int kRepairRounds = 32;
constexpr std::uint64_t kStepsPerMove = 16;  // of a Watch
constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max();

Bytes saturating_add(Bytes a, Bytes b) { return a > kUnlimited - b ? kUnlimited : a + b; }

Bytes output_bytes(const Graph& graph, OpId op) {
  Bytes total = 0;
  for (const TensorId tensor : graph.outputs(op)) total = saturating_add(total, graph.bytes(tensor));
  return total;
}

[[noreturn]] void throw_infeasible(const Problem& problem, const Timeline::Overflow& overflow, std::string_view why) {
  throw InfeasibleError(
      fmt::format("{}: op '{}' needs {} bytes on device '{}', parameters and live tensors included; required "
                  "at most {}{}",
                  problem.graph().title(), problem.graph().name(overflow.op), overflow.needed,
                  problem.machine().device(overflow.device).name, overflow.capacity, why));
}

// Throws if a unit exceeds every device it is allowed on, even alone: that proves infeasibility.
void check_units(const Problem& problem) {
  const StaticMemory empty(problem);
  for_each_unit(problem, [&](OpId op) {
    const auto devices = problem.devices(op);
    if (std::any_of(devices.begin(), devices.end(), [&](DeviceId device) { return empty.fits(op, device); })) return;
    const DeviceId best = empty.least_excess(op);
    const Bytes capacity = memory_capacity(problem, best);
    throw_infeasible(problem, {op, best, saturating_add(capacity, empty.excess(op, best)), capacity},
                     ", and no other device suffices even if it is empty");
  });
}

// Throws if what stays to the end (parameters, and tensors that nobody reads) exceeds all devices together: that proves
// infeasibility too.
void check_total(const Problem& problem) {
  const Graph& graph = problem.graph();
  Bytes capacity = 0, needed = 0;
  for (DeviceId device = 0; device < problem.device_count(); ++device)
    capacity = saturating_add(capacity, memory_capacity(problem, device));
  for (OpId op = 0; op < problem.op_count(); ++op) {
    needed = saturating_add(needed, graph.parameter_bytes(op));
    for (const TensorId tensor : graph.outputs(op))
      if (graph.consumers(tensor).empty()) needed = saturating_add(needed, graph.bytes(tensor));
  }
  if (needed > capacity)
    throw InfeasibleError(
        fmt::format("{}: parameters, and tensors that no op reads, need {} bytes; required at most {}, the memory of "
                    "all devices of '{}' together",
                    graph.title(), needed, capacity, problem.machine().name()));
}

// One repair from one starting point.
class Repair {
 public:
  Repair(const Problem& problem, const StaticMemory& sizes, Proposal& proposal, Watch& watch)
      : problem_(problem), sizes_(sizes), proposal_(proposal), watch_(watch), moved_(problem.op_count(), 0) {}

  // Simulates; true if nothing needs repair.
  bool fits(Objective& objective) {
    watch_.step(problem_.op_count());
    Timeline timeline = objective.simulate(proposal_.placement, watch_.budget());
    ++proposal_.evaluations;
    overflow_ = timeline.overflow;
    peak_memory_ = std::move(timeline.peak_memory);
    return !overflow_;
  }

  // After fits() said no. The overflow that is left, if any.
  std::optional<Timeline::Overflow> run(Objective& objective) {
    for (int round = 0; round < kRepairRounds && relieve(); ++round)
      if (fits(objective)) return std::nullopt;
    return overflow_;
  }

 private:
  // Moves units off every device that is too full. False if there was nothing to move.
  bool relieve() {
    std::vector<Bytes> used = peak_memory_;
    bool any = false;
    for (DeviceId device = 0; device < problem_.device_count(); ++device)
      if (used[device] > memory_capacity(problem_, device)) any |= relieve(device, used);
    return any;
  }

  bool relieve(DeviceId device, std::vector<Bytes>& used) {
    std::vector<std::pair<Bytes, OpId>> movable;
    for_each_unit(problem_, [&](OpId op) {
      if (proposal_.placement.device_of_op[op] == device && !moved_[op] && problem_.devices(op).size() > 1)
        movable.emplace_back(sizes_.footprint(op), op);
    });
    std::sort(movable.begin(), movable.end());
    std::set<std::pair<Bytes, OpId>> units(movable.begin(), movable.end());  // taken from the middle, hence a tree
    bool any = false;
    while (used[device] > memory_capacity(problem_, device) && !units.empty()) {
      watch_.step(kStepsPerMove + problem_.device_count());
      const Bytes excess = used[device] - memory_capacity(problem_, device);
      auto unit = units.lower_bound(std::pair(excess, OpId{0}));
      if (unit == units.end()) --unit;
      const auto [size, op] = *unit;
      units.erase(unit);
      const auto target = roomiest(op, device, size, used);
      if (size == 0 || !target) continue;
      assign_unit(problem_, proposal_.placement, op, *target, Cause::memory);
      moved_[op] = 1;
      used[device] -= std::min(used[device], size);
      used[*target] = saturating_add(used[*target], size);
      any = true;
    }
    return any;
  }

  // The allowed device, other than `from`, with most room for `size`; none if it fits nowhere.
  std::optional<DeviceId> roomiest(OpId op, DeviceId from, Bytes size, const std::vector<Bytes>& used) const {
    std::optional<DeviceId> best;
    Bytes best_room = 0;
    for (const DeviceId device : problem_.devices(op)) {
      const Bytes limit = memory_capacity(problem_, device);
      const Bytes room = limit == kUnlimited ? kUnlimited : limit - std::min(limit, used[device]);
      if (device == from || room < size || (best && room <= best_room)) continue;
      best = device;
      best_room = room;
    }
    return best;
  }

  const Problem& problem_;
  const StaticMemory& sizes_;
  Proposal& proposal_;
  Watch& watch_;
  std::vector<char> moved_;
  // Of the last simulation.
  std::optional<Timeline::Overflow> overflow_;
  std::vector<Bytes> peak_memory_;
};

}  // namespace

Placement fill_by_memory(const Problem& problem) {
  const Graph& graph = problem.graph();
  std::vector<double> amount(problem.op_count()), limit(problem.device_count());
  double total = 0, room = 0;
  for (OpId op = 0; op < problem.op_count(); ++op)
    total += amount[op] = static_cast<double>(saturating_add(graph.parameter_bytes(op), output_bytes(graph, op)));
  for (DeviceId device = 0; device < problem.device_count(); ++device)
    room += limit[device] = static_cast<double>(memory_capacity(problem, device));
  for (double& value : limit) value *= total / room;
  return fill_in_order(problem, amount, limit);
}

Bytes working_set(const Costs& costs, OpId op) {
  if (costs.fastest(op) == 0) return 0;
  const Graph& graph = costs.graph();
  Bytes total = output_bytes(graph, op);
  for (const TensorId tensor : graph.inputs(op)) total = saturating_add(total, graph.bytes(tensor));
  return total;
}

Bytes memory_capacity(const Problem& problem, DeviceId device) {
  const Bytes memory = problem.machine().device(device).memory;
  return memory == 0 ? kUnlimited : memory;
}

StaticMemory::Need StaticMemory::Need::operator+(const Need& other) const {
  return {saturating_add(parameters, other.parameters), saturating_add(results, other.results),
          std::max(working_set, other.working_set)};
}

Bytes StaticMemory::Need::total() const { return saturating_add(parameters, std::max(results, working_set)); }

StaticMemory::StaticMemory(const Problem& problem) : problem_(problem) {
  if (!problem.memory_limited()) return;
  const Graph& graph = problem.graph();
  unit_.resize(problem.op_count());
  device_.resize(problem.device_count());
  for (OpId op = 0; op < problem.op_count(); ++op) {
    Need need{graph.parameter_bytes(op), 0, doppler::working_set(problem.costs(), op)};
    for (const TensorId tensor : graph.outputs(op))
      if (graph.consumers(tensor).empty()) need.results = saturating_add(need.results, graph.bytes(tensor));
    Need& unit = unit_[problem.unit(op).front()];
    unit = unit + need;
  }
}

Bytes StaticMemory::excess(OpId op, DeviceId device) const {
  if (unit_.empty()) return 0;
  const Bytes need = (device_[device] + unit_[problem_.unit(op).front()]).total();
  const Bytes capacity = memory_capacity(problem_, device);
  return need > capacity ? need - capacity : 0;
}

DeviceId StaticMemory::least_excess(OpId op) const {
  const auto devices = problem_.devices(op);
  return *std::min_element(devices.begin(), devices.end(),
                           [&](DeviceId a, DeviceId b) { return excess(op, a) < excess(op, b); });
}

void StaticMemory::add(OpId op, DeviceId device) {
  if (unit_.empty()) return;
  device_[device] = device_[device] + unit_[problem_.unit(op).front()];
}

Bytes StaticMemory::footprint(OpId op) const { return unit_.empty() ? 0 : unit_[problem_.unit(op).front()].total(); }

Proposal fit_in_memory(Objective& objective, Proposal proposal, const Budget& budget) {
  const Problem& problem = objective.problem();
  if (!problem.memory_limited()) return proposal;
  const StaticMemory sizes(problem);
  Watch watch(budget);
  Repair repair(problem, sizes, proposal, watch);
  if (repair.fits(objective)) return proposal;
  check_units(problem);
  check_total(problem);
  const auto overflow = repair.run(objective);
  if (!overflow) return proposal;
  const auto attempt = [&](Placement placement) {
    proposal.placement = std::move(placement);
    for (Cause& cause : proposal.placement.cause_of_op)
      if (cause == Cause::chosen || cause == Cause::fill_order) cause = Cause::memory;
    Repair again(problem, sizes, proposal, watch);
    return again.fits(objective) || !again.run(objective);
  };
  if (attempt(fill_by_memory(problem))) return proposal;
  // Of two devices that can be exchanged the second would fail as the first did.
  std::uint32_t kinds = 0;
  const std::vector<std::uint32_t> kind = interchangeable_devices(problem);
  for (DeviceId device = 0; device < problem.device_count(); ++device) {
    if (kind[device] < kinds) continue;
    kinds = kind[device] + 1;
    if (attempt(one_device(problem, device))) return proposal;
  }
  throw_infeasible(problem, *overflow, "; no placement that fits was found");
}

}  // namespace doppler
