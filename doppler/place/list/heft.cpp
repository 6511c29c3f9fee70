#include "doppler/place/list/heft.h"

#include "doppler/place/list/list_schedule.h"

namespace doppler {

Proposal heft(const Problem& problem, Objective& objective, const MethodOptions& options) {
  const Costs& costs = problem.costs();
  const std::vector<std::uint32_t> rank = default_priority(costs);  // descending upward rank
  std::vector<OpId> order(problem.op_count());
  for (OpId op = 0; op < problem.op_count(); ++op) order[rank[op]] = op;

  ListSchedule schedule(problem, options.budget);
  for (const OpId op : order) place_where_it_finishes_first(schedule, costs, op);
  return fit_in_memory(objective, {std::move(schedule).finish(ListSchedule::Order::started)}, options.budget);
}

}  // namespace doppler
