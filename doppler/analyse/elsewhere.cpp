#include "doppler/analyse/elsewhere.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/base/similar.h"

namespace doppler {

std::vector<NamedOps> ops_named(const std::string& where, const Graph& graph, const Modules& modules,
                                const std::string& text) {
  std::vector<NamedOps> found;
  std::vector<std::size_t> index_of(modules.size(), 0);
  for (OpId op = 0; op < graph.op_count(); ++op)
    for (const Modules::Id id : modules.path(op)) {  // The outermost module that matches has what is in it.
      if (!matches(text, modules[id].name)) continue;
      if (index_of[id] == 0) {
        found.push_back({modules[id].name, {}});
        index_of[id] = found.size();
      }
      found[index_of[id] - 1].ops.push_back(op);
      break;
    }
  if (!found.empty()) return found;
  for (OpId op = 0; op < graph.op_count(); ++op)
    if (matches(text, graph.name(op))) found.push_back({graph.name(op), {op}});
  if (!found.empty()) return found;
  std::vector<std::string> names;
  for (Modules::Id id = 0; id < modules.size(); ++id) names.push_back(modules[id].name);
  for (OpId op = 0; op < graph.op_count(); ++op) names.push_back(graph.name(op));
  throw InputError(fmt::format(
      "{}: no op or module is called '{}'; required one of its {} ops{}, or a pattern{}", where, text, graph.op_count(),
      modules.empty() ? "" : fmt::format(" or {} modules", modules.size()), did_you_mean(text, names)));
}

std::optional<Placement> moved(const Problem& problem, const Placement& placement, const std::vector<OpId>& ops,
                               DeviceId to) {
  Placement other = placement;
  for (const OpId op : ops) {
    if (!problem.allows(op, to)) return std::nullopt;
    for (const OpId member : problem.unit(op)) other.device_of_op[member] = to;
  }
  return other;
}

std::vector<WhyResult::Elsewhere> elsewhere(Objective& exact, const Placement& placement,
                                            const std::vector<OpId>& ops) {
  const Problem& problem = exact.problem();
  std::vector<WhyResult::Elsewhere> costs;
  for (DeviceId device = 0; device < problem.device_count(); ++device) {
    const auto is_there = [&](OpId op) { return placement.device_of_op[op] == device; };
    if (std::all_of(ops.begin(), ops.end(), is_there)) continue;
    WhyResult::Elsewhere cost{problem.machine().device(device).name, {}, {}};
    const std::optional<Placement> other = moved(problem, placement, ops, device);
    if (!other)
      cost.reason = "it may not run there";
    else if (!exact.fits_in_memory(*other))
      cost.reason = "memory would not suffice";
    else
      cost.makespan = exact.value(*other);
    costs.push_back(std::move(cost));
  }
  return costs;
}

}  // namespace doppler
