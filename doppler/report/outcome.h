#pragma once

#include <optional>
#include <span>
#include <string>

#include "doppler/bounds/bounds.h"
#include "doppler/problem/placement.h"
#include "doppler/sim/timeline.h"

namespace doppler {

// One placement of one graph and what it is worth: what every reporter shows.
struct Outcome {
  Provenance made;  // who, with what, on what; makespan and lower bound
  LowerBound::Kind bound_kind = LowerBound::Kind::work;
  double gap = 0;           // makespan / lower bound - 1
  bool feasible = true;     // false: see `reason` if nothing was found, else the overflow of the timeline
  bool optimal = false;     // proven
  std::string reason = {};  // why there is no placement; makespan and gap then mean nothing
  Seconds seconds = 0;      // wall-clock time of the method
  bool unitless = false;    // makespans are in the graph's own unit
  std::optional<Seconds> expected =
      std::nullopt;  // makespan if times vary as the machine says; none if it says nothing
};

// The JSON that others script against (DESIGN.md, docs/json.md). All end with a newline.
std::string simulation_to_json(const Outcome& outcome, const Timeline& timeline, const Graph& graph,
                               const Machine& machine);
// As above, with method, seconds and the placement as its file has it. `single_device` is the makespan of the
// best single device; 0: no single device can run the graph.
std::string place_result_to_json(const Outcome& outcome, const Timeline& timeline, const Graph& graph,
                                 const Machine& machine, const Placement& placement, Seconds single_device);
std::string comparison_to_json(std::span<const Outcome> outcomes);

}  // namespace doppler
