#include "doppler/learn/train/expert.h"

#include "doppler/place/search/anneal.h"

namespace doppler {
namespace {

// The device of the neighbour with which the unit exchanges most; its own if that is there.
DeviceId heaviest_neighbour(const PolicyInput& input, const Placement& placement, OpId op) {
  DeviceId device = placement.device_of_op[op];
  float heaviest = -1;
  for (const auto edges : {input.producers(op), input.consumers(op)})
    for (const PolicyInput::Edge& edge : edges)
      if (edge.weight > heaviest) {
        heaviest = edge.weight;
        device = placement.device_of_op[edge.op];
      }
  return device;
}

// Search leaves ops on devices for no reason, which a policy cannot learn: each op that can join its heaviest neighbour
// at no cost does.
Seconds tidy(Task& task, Placement& placement, Objective& objective) {
  const Problem& problem = task.problem();
  Seconds makespan = objective.value(placement);
  if (problem.memory_limited() || problem.has_groups()) return makespan;
  for (const OpId op : problem.graph().topological_order()) {
    const DeviceId before = placement.device_of_op[op];
    const DeviceId device = heaviest_neighbour(task.input(), placement, op);
    if (device == before || !problem.allows(op, device)) continue;
    placement.device_of_op[op] = device;
    const Seconds after = objective.value(placement);
    if (after <= makespan)
      makespan = after;
    else
      placement.device_of_op[op] = before;
  }
  return makespan;
}

}  // namespace

void improve_by_search(Task& task, const Placement& start, const Budget& budget, std::uint64_t seed) {
  MethodOptions options;
  options.budget = budget;
  options.seed = seed;
  options.known_bound = task.bound();
  Proposal proposal = anneal_from(task.problem(), task.objective(), options, {start});
  task.count(proposal.evaluations);
  Placement& found = proposal.placement;
  tidy(task, found, task.objective());
  task.evaluate(found);
}

}  // namespace doppler
