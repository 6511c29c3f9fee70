#include "doppler/results.h"

#include <algorithm>

namespace doppler {
namespace {

constexpr std::size_t kParts = 40;  // of a run, for DeviceUse::activity

// The busy time of each device in each of kParts equal parts of the run.
std::vector<double> busy_by_part(const Timeline& timeline, DeviceId devices) {
  std::vector<double> busy(devices * kParts, 0.0);
  const Seconds part = timeline.makespan / kParts;
  if (!(part > 0)) return busy;
  for (const Timeline::Execution& run : timeline.executions) {
    for (auto i = static_cast<std::size_t>(run.start / part); i < kParts; ++i) {
      const Seconds from = static_cast<double>(i) * part;
      if (from >= run.end) break;
      busy[run.device * kParts + i] += std::max(0.0, std::min(run.end, from + part) - std::max(run.start, from));
    }
  }
  return busy;
}

}  // namespace

bool better(const Outcome& a, const Outcome& b) {
  const bool exact = a.objective == "exact" || !a.expected || !b.expected;  // Means are compared with means alone.
  const auto value = [&](const Outcome& outcome) {
    if (exact) return outcome.made.makespan;
    return a.objective == "p95" && a.p95 && b.p95 ? *outcome.p95 : *outcome.expected;
  };
  return a.feasible && (!b.feasible || value(a) < value(b));
}

std::string_view to_string(GraphFacts::Measure measure) {
  constexpr std::string_view kUnits[] = {"s", "graph", "flops"};
  return kUnits[static_cast<int>(measure)];
}

std::vector<DeviceUse> device_uses(const Timeline& timeline, const Machine& machine) {
  std::vector<DeviceUse> uses(machine.device_count());
  const std::vector<double> busy = busy_by_part(timeline, machine.device_count());
  for (const Timeline::Execution& run : timeline.executions) ++uses[run.device].ops;
  for (DeviceId id = 0; id < machine.device_count(); ++id) {
    const Device& device = machine.device(id);
    DeviceUse& use = uses[id];
    use.name = device.name;
    if (id < timeline.busy.size()) use.busy = timeline.busy[id];
    use.memory = device.memory;
    if (id < timeline.peak_memory.size()) use.peak_memory = timeline.peak_memory[id];
    const double whole = device.slots * timeline.makespan;
    if (whole > 0) use.utilisation = use.busy / whole;
    for (std::size_t i = 0; i < kParts; ++i)
      use.activity.push_back(whole > 0 ? busy[id * kParts + i] / (whole / kParts) : 0);
  }
  return uses;
}

Traffic traffic(const Timeline& timeline, const Graph& graph) {
  Traffic result;
  result.transfers = timeline.transfers.size();
  for (const Timeline::Transfer& transfer : timeline.transfers) result.bytes += graph.bytes(transfer.tensor);
  return result;
}

SimulationResult simulation_result(Outcome outcome, const Problem& problem, const Timeline& timeline) {
  SimulationResult result;
  result.outcome = std::move(outcome);
  if (const auto& overflow = timeline.overflow)
    result.overflow = OverflowFact{problem.graph().name(overflow->op), problem.machine().device(overflow->device).name,
                                   overflow->needed, overflow->capacity};
  result.devices = device_uses(timeline, problem.machine());
  result.transfers = traffic(timeline, problem.graph());
  return result;
}

}  // namespace doppler
