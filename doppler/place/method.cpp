#include "doppler/place/method.h"

#include <array>
#include <chrono>

#include "doppler/base/error.h"
#include "doppler/sim/simulator.h"

namespace doppler {

std::span<const Method> methods() { return {}; }

const Method& method_by_name(std::string_view name) {
  std::string names;
  for (const Method& method : methods()) {
    if (method.name == name) return method;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", method.name);
  }
  throw InputError(fmt::format("method: found '{}'; required one of {}", name, names));
}

Result place(const Problem& problem, const Method& method, const MethodOptions& options,
             const LowerBound& bound) {
  const auto start = std::chrono::steady_clock::now();
  Proposal proposal = method.run(problem, options);
  Result result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  verify(problem, proposal.placement);
  const Timeline timeline = Simulator(problem).simulate(proposal.placement);
  result.method = method.name;
  result.winner = proposal.winner.empty() ? result.method : std::move(proposal.winner);
  result.placement = std::move(proposal.placement);
  result.makespan = timeline.makespan;
  result.feasible = timeline.feasible();
  result.bound = bound;
  if (proposal.proven_bound && *proposal.proven_bound > bound.value)
    result.bound.value = *proposal.proven_bound;
  result.gap = result.bound.value > 0 ? result.makespan / result.bound.value - 1 : 0;
  result.optimal = result.makespan <= result.bound.value;
  result.evaluations = proposal.evaluations;
  result.seed = options.seed;
  return result;
}

}  // namespace doppler
