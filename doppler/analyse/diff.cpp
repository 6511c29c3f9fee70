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
  // Ops of one module that moved from one device to one other are one line.
  const Modules modules(problem.graph());
  using Key = std::tuple<std::string, DeviceId, DeviceId>;
  std::map<Key, std::vector<OpId>> moved_ops;
  for (OpId op = 0; op < problem.op_count(); ++op) {
    if (a.device_of_op[op] == b.device_of_op[op]) continue;
    const Modules::Id module = modules.of(op);
    const std::string& name = module == Modules::kNone ? problem.graph().name(op) : modules[module].name;
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
