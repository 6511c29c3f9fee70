#include <algorithm>
#include <map>

#include "doppler/analyse/chain.h"
#include "doppler/analyse/elsewhere.h"
#include "doppler/base/error.h"
#include "doppler/place/simplify.h"
#include "doppler/why.h"

namespace doppler {
namespace {

DiffResult::Side side_of(Objective& exact, const Placement& placement) {
  const Timeline run = exact.simulate(placement);
  DiffResult::Side side;
  side.makespan = run.makespan;
  side.feasible = run.feasible();
  side.devices = used_devices(exact.problem(), placement);
  side.moved = moved_bytes(exact.problem().graph(), placement.device_of_op);
  Seconds at = 0;
  for (const ChainStep& step : critical_chain(exact.problem(), run)) {
    (step.is_transfer ? side.chain_transfer : side.chain_compute) += step.end - step.start;
    side.chain_idle += std::max(0.0, step.start - at);
    at = step.end;
  }
  return side;
}

// Whether all ops of a module are on one device in the first placement, and on one in the second.
std::vector<bool> modules_that_move_as_one(const Modules& modules, const Placement& a, const Placement& b) {
  std::vector<bool> as_one(modules.size(), true), seen(modules.size(), false);
  std::vector<std::pair<DeviceId, DeviceId>> devices(modules.size());
  for (OpId op = 0; op < a.device_of_op.size(); ++op)
    for (const Modules::Id id : modules.path(op)) {
      const std::pair here(a.device_of_op[op], b.device_of_op[op]);
      if (!seen[id]) devices[id] = here;
      seen[id] = true;
      if (devices[id] != here) as_one[id] = false;
    }
  return as_one;
}

}  // namespace

DiffResult diff(const Problem& problem, const Placement& a, const Placement& b, const std::string& graph) {
  verify(problem, a);
  verify(problem, b);
  ExactObjective exact(problem);
  DiffResult result;
  result.graph = graph.empty() ? problem.graph().title() : graph;
  result.machine = problem.machine().name();
  result.unitless = problem.graph().unitless();
  result.a = side_of(exact, a);
  result.b = side_of(exact, b);
  // Ops of one module that moved from one device to one other are one line, by the outermost such module.
  const Modules modules(problem.graph());
  const std::vector<bool> moves_as_one = modules_that_move_as_one(modules, a, b);
  using Key = std::tuple<std::string, DeviceId, DeviceId>;
  std::map<Key, std::vector<OpId>> moved_ops;
  for (OpId op = 0; op < problem.op_count(); ++op) {
    if (a.device_of_op[op] == b.device_of_op[op]) continue;
    const std::vector<Modules::Id> path = modules.path(op);
    const auto whole = std::find_if(path.begin(), path.end(), [&](Modules::Id id) { return moves_as_one[id]; });
    const std::string& name = whole != path.end() ? modules[*whole].name
                              : path.empty()      ? problem.graph().name(op)
                                                  : modules[path.back()].name;
    moved_ops[{name, a.device_of_op[op], b.device_of_op[op]}].push_back(op);
    ++result.ops_moved;
  }
  for (const auto& [key, ops] : moved_ops) {
    const auto& [name, from, to] = key;
    DiffResult::Moved entry{
        name, problem.machine().device(from).name, problem.machine().device(to).name, ops.size(), {}};
    if (const std::optional<Placement> other = moved(problem, a, ops, to)) entry.alone = exact.value(*other);
    result.moved.push_back(std::move(entry));
  }
  std::stable_sort(result.moved.begin(), result.moved.end(),
                   [](const DiffResult::Moved& x, const DiffResult::Moved& y) {
                     return x.alone.value_or(Costs::kNever) < y.alone.value_or(Costs::kNever);
                   });
  return result;
}

}  // namespace doppler
