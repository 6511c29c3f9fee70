#include "doppler/learn/train/expert.h"

#include <cmath>

#include "doppler/place/search/anneal.h"

namespace doppler {
namespace {

// Returns the device of the neighbour with which the op exchanges most, or its own if it has no neighbours. Times that
// are equal in single precision count as equal, and the first of equals is taken.
DeviceId heaviest_neighbour(const Problem& problem, const Placement& placement, OpId op) {
  const Graph& graph = problem.graph();
  DeviceId device = placement.device_of_op[op];
  float heaviest = -1;
  const auto consider = [&](TensorId tensor, OpId neighbour) {
    const auto weight = static_cast<float>(problem.costs().mean_transfer(tensor));
    if (weight <= heaviest) return;
    heaviest = weight;
    device = placement.device_of_op[neighbour];
  };
  for (const TensorId tensor : graph.inputs(op)) consider(tensor, graph.producer(tensor));
  for (const TensorId tensor : graph.outputs(op))
    for (const OpId consumer : graph.consumers(tensor)) consider(tensor, consumer);
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
    const DeviceId device = heaviest_neighbour(problem, placement, op);
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

void improve_by_blocks(Task& task, const Placement& start, const std::vector<std::vector<OpId>>& blocks,
                       std::uint64_t moves, Rng rng) {
  // Of the makespan at first; a worse placement by as much is accepted with probability 1/e.
  constexpr double kTemperature = 0.05, kCooling = 0.95;
  const Problem& problem = task.problem();
  if (blocks.empty() || problem.device_count() < 2) return;
  Placement current = start, next = start;
  Seconds makespan = task.evaluate(current, Task::kSearch);
  double temperature = kTemperature * makespan;
  for (std::uint64_t move = 0; move < moves; ++move, temperature *= kCooling) {
    const auto& block = blocks[rng.below(static_cast<std::uint32_t>(blocks.size()))];
    const DeviceId device = rng.below(problem.device_count());
    next.device_of_op = current.device_of_op;
    for (const OpId op : block)
      if (problem.allows(op, device))
        for (const OpId member : problem.unit(op)) next.device_of_op[member] = device;
    if (next.device_of_op == current.device_of_op) continue;
    const Seconds after = task.evaluate(next, Task::kSearch);
    if (after > makespan && rng.uniform() >= std::exp((makespan - after) / temperature)) continue;
    makespan = after;
    std::swap(current.device_of_op, next.device_of_op);
  }
}

void improve_by_search(Task& task, const Placement& start, const Budget& budget, std::uint64_t seed) {
  MethodOptions options;
  options.budget = budget;
  options.seed = seed;
  options.known_bound = task.bound();
  Proposal proposal = anneal_from(task.problem(), task.objective(), options, {start});
  task.count(proposal.evaluations);
  Placement& found = proposal.placement;
  tidy(task, found, task.objective());
  task.evaluate(found, Task::kSearch);
}

}  // namespace doppler
