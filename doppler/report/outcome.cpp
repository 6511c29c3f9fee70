#include "doppler/report/outcome.h"

#include <nlohmann/json.hpp>

#include "doppler/report/summary.h"

namespace doppler {
namespace {

using nlohmann::ordered_json;

// Names come from files and paths, which need not be UTF-8.
std::string dump(const ordered_json& value) {
  return value.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json outcome_json(const Outcome& outcome) {
  ordered_json result = {{"graph", outcome.made.graph},
                         {"machine", outcome.made.machine},
                         {"discipline", outcome.made.discipline},
                         {"links", outcome.made.links},
                         {"unit", outcome.unitless ? "graph" : "s"},
                         {"makespan", nullptr},
                         {"lower_bound", outcome.made.lower_bound},
                         {"bound_kind", to_string(outcome.bound_kind)},
                         {"gap", nullptr},
                         {"optimal", outcome.optimal},
                         {"feasible", outcome.feasible}};
  if (outcome.reason.empty()) {
    result["makespan"] = outcome.made.makespan;
    result["gap"] = outcome.gap;
    if (outcome.expected) result["expected"] = *outcome.expected;
  } else {
    result["reason"] = outcome.reason;
  }
  return result;
}

void add_method(ordered_json& result, const Outcome& outcome) {
  result["method"] = outcome.made.method;
  result["winner"] = outcome.made.winner;
  result["seconds"] = outcome.seconds;
  result["evaluations"] = outcome.made.evaluations;
  result["seed"] = outcome.made.seed;
}

ordered_json simulation_json(const Outcome& outcome, const Timeline& timeline, const Graph& graph,
                             const Machine& machine) {
  ordered_json result = outcome_json(outcome);
  if (timeline.overflow) {
    const Timeline::Overflow& overflow = *timeline.overflow;
    result["overflow"] = {{"op", graph.name(overflow.op)},
                          {"device", machine.device(overflow.device).name},
                          {"needed", overflow.needed},
                          {"capacity", overflow.capacity}};
  }
  auto& devices = result["devices"] = ordered_json::array();
  const std::vector<DeviceUse> uses = device_uses(timeline, machine);
  for (DeviceId id = 0; id < machine.device_count(); ++id)
    devices.push_back({{"name", machine.device(id).name},
                       {"ops", uses[id].ops},
                       {"busy", timeline.busy[id]},
                       {"utilisation", uses[id].utilisation},
                       {"peak_memory", timeline.peak_memory[id]},
                       {"memory", machine.device(id).memory}});
  const Traffic moved = traffic(timeline, graph);
  result["transfers"] = {{"count", moved.transfers}, {"bytes", moved.bytes}};
  return result;
}

}  // namespace

std::string simulation_to_json(const Outcome& outcome, const Timeline& timeline, const Graph& graph,
                               const Machine& machine) {
  return dump(simulation_json(outcome, timeline, graph, machine));
}

std::string place_result_to_json(const Outcome& outcome, const Timeline& timeline, const Graph& graph,
                                 const Machine& machine, const Placement& placement, Seconds single_device) {
  ordered_json result = simulation_json(outcome, timeline, graph, machine);
  add_method(result, outcome);
  result["single_device_makespan"] = single_device > 0 ? ordered_json(single_device) : ordered_json(nullptr);
  result["placement"] = ordered_json::parse(placement_to_json(placement, outcome.made));
  return dump(result);
}

std::string comparison_to_json(std::span<const Outcome> outcomes) {
  ordered_json results = ordered_json::array();
  for (const Outcome& outcome : outcomes) {
    ordered_json& result = results.emplace_back(outcome_json(outcome));
    add_method(result, outcome);
  }
  return dump({{"format", "doppler-comparison"}, {"version", 1}, {"results", results}});
}

}  // namespace doppler
