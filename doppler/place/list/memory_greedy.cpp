#include "doppler/place/list/memory_greedy.h"

#include <algorithm>
#include <numeric>

#include "doppler/place/list/simple_placements.h"
#include "doppler/place/memory.h"

namespace doppler {
namespace {

// Room for parameters on every device, with the tensors of the largest op set aside.
std::vector<double> room_for_parameters(const Problem& problem) {
  Bytes largest = 0;
  for (OpId op = 0; op < problem.op_count(); ++op) largest = std::max(largest, working_set(problem.costs(), op));
  std::vector<double> room;
  for (DeviceId device = 0; device < problem.device_count(); ++device)
    room.push_back(static_cast<double>(memory_capacity(problem, device)) - static_cast<double>(largest));
  return room;
}

}  // namespace

Proposal memory_greedy(const Problem& problem, Objective& objective, const MethodOptions& options) {
  std::vector<double> parameters;
  for (OpId op = 0; op < problem.op_count(); ++op)
    parameters.push_back(static_cast<double>(problem.graph().parameter_bytes(op)));
  if (problem.memory_limited())
    return fit_in_memory(objective, {fill_in_order(problem, parameters, room_for_parameters(problem))}, options.budget);

  const bool any_parameters = std::any_of(parameters.begin(), parameters.end(), [](double x) { return x > 0; });
  const std::vector<double>& amount = any_parameters ? parameters : problem.costs().mean_times();
  const double total = std::accumulate(amount.begin(), amount.end(), 0.0);
  const std::vector<double> share(problem.device_count(), total / problem.device_count());
  return {fill_in_order(problem, amount, share)};
}

}  // namespace doppler
