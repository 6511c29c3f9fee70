#include "doppler/learn/train/expert.h"

#include <cmath>

#include "doppler/place/search/anneal.h"

namespace doppler {
namespace {

constexpr std::uint64_t kStepsPerOp = 16;  // What a watch is told that a simulation takes.

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
// at no cost does. As far as there is time: the placement is a good one all along.
void tidy(Placement& placement, Objective& objective, const Budget& budget) try {
  const Problem& problem = objective.problem();
  if (problem.memory_limited() || problem.has_groups()) return;
  Watch watch(budget);
  Seconds makespan = objective.value(placement);
  for (const OpId op : problem.graph().topological_order()) {
    const DeviceId before = placement.device_of_op[op];
    const DeviceId device = heaviest_neighbour(problem, placement, op);
    if (device == before || !problem.allows(op, device)) continue;
    watch.step(kStepsPerOp * problem.op_count());
    placement.device_of_op[op] = device;
    const Seconds after = objective.value(placement);
    if (after <= makespan)
      makespan = after;
    else
      placement.device_of_op[op] = before;
  }
} catch (const OutOfTime&) {
}

}  // namespace

void improve_by_blocks(Task& task, const Placement& start, const std::vector<std::vector<OpId>>& blocks,
                       std::uint64_t moves, const Budget& budget, Rng rng) try {
  // Of the makespan at first; a worse placement by as much is accepted with probability 1/e.
  constexpr double kTemperature = 0.05, kCooling = 0.95;
  const Problem& problem = task.problem();
  if (blocks.empty() || problem.device_count() < 2) return;
  Watch watch(budget);
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
    watch.step(kStepsPerOp * problem.op_count());
    const Seconds after = task.evaluate(next, Task::kSearch);
    if (after > makespan && rng.uniform() >= std::exp((makespan - after) / temperature)) continue;
    makespan = after;
    std::swap(current.device_of_op, next.device_of_op);
  }
} catch (const OutOfTime&) {
  // The task knows what was found.
}

void improve_by_search(Task& task, const Placement& start, const Budget& budget, std::uint64_t seed) {
  MethodOptions options;
  options.budget = budget;
  options.seed = seed;
  options.known_bound = task.bound();
  Proposal proposal = anneal_from(task.problem(), task.objective(), options, {start});
  task.count(proposal.evaluations);
  Placement& found = proposal.placement;
  tidy(found, task.objective(), budget);
  task.evaluate(found, Task::kSearch);
}

}  // namespace doppler
