#include "doppler/method.h"

#include <algorithm>
#include <chrono>

#include "doppler/base/error.h"
#include "doppler/place/exact/exact.h"
#include "doppler/place/learned.h"
#include "doppler/place/list/cpop.h"
#include "doppler/place/list/critical_path.h"
#include "doppler/place/list/etf.h"
#include "doppler/place/list/heft.h"
#include "doppler/place/list/memory_greedy.h"
#include "doppler/place/list/random.h"
#include "doppler/place/list/round_robin.h"
#include "doppler/place/list/single.h"
#include "doppler/place/partition/enumerative.h"
#include "doppler/place/partition/metis.h"
#include "doppler/place/search/anneal.h"
#include "doppler/place/search/portfolio.h"

namespace doppler {

std::span<const Method> methods() {
  using Family = Method::Family;
  static constexpr Method kMethods[] = {
      {"single", "everything on the best single device", Family::list, false, single},
      {"round_robin", "ops in topological order, dealt to the devices in turn", Family::list, false, round_robin},
      {"random", "a random device for every op", Family::list, false, random},
      {"critical_path", "largest b-level first, where it starts earliest; best of 50", Family::list, false,
       critical_path},
      {"heft", "largest upward rank first, where it finishes earliest, with insertion", Family::list, false, heft},
      {"etf", "the ready op and device with the earliest start", Family::list, false, etf},
      {"cpop", "the critical path on one device, the rest where it finishes earliest", Family::list, false, cpop},
      {"metis", "balanced graph partition, best of many seeds and imbalances", Family::partition, false, metis},
      {"enumerative", "shards of one operation spread where least data moves (approximation)", Family::partition, false,
       enumerative},
      {"memory_greedy", "devices filled one after the other, like device_map=\"auto\"", Family::list, false,
       memory_greedy},
      {"exact", "branch and bound; proves the best for small graphs", Family::search, true, exact},
      {"anneal", "simulated annealing over devices and priorities", Family::search, true, anneal},
      {"doppler", "the learned dual policy, or the best of heft, etf and single if that wins", Family::learned, false,
       learned},
      {"auto", "all cheap methods and the learned policy, then annealing from the best of them", Family::search, true,
       portfolio},
  };
  return kMethods;
}

const Method& method_by_name(std::string_view name) {
  std::string names;
  for (const Method& method : methods()) {
    if (method.name == name) return method;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", method.name);
  }
  throw InputError(fmt::format("method: found '{}'; required one of {}", name, names));
}

std::string learned_methods() {
  std::string names;
  for (const Method& method : methods())
    if (method.family == Method::Family::learned) names += fmt::format("{}{}", names.empty() ? "" : ", ", method.name);
  return names;
}

Result place(Objective& objective, const Method& method, const MethodOptions& options, const LowerBound& bound) {
  const auto start = std::chrono::steady_clock::now();
  const Problem& problem = objective.problem();
  MethodOptions with_bound = options;
  // The mean of a few draws may be below a bound on exact times.
  with_bound.known_bound = objective.exact() ? std::max(options.known_bound, bound.value) : 0;
  Proposal proposal = method.run(problem, objective, with_bound);
  Result result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  verify(problem, proposal.placement);
  result.timeline = objective.simulate(proposal.placement);
  result.method = method.name;
  result.winner = proposal.winner.empty() ? result.method : std::move(proposal.winner);
  result.placement = std::move(proposal.placement);
  result.makespan = result.timeline.makespan;
  result.feasible = result.timeline.feasible();
  result.bound = bound;
  if (proposal.proven_bound && *proposal.proven_bound > bound.value)
    result.bound = {*proposal.proven_bound, LowerBound::Kind::search};
  result.gap = gap(result.makespan, result.bound.value);
  result.optimal = result.feasible && reaches(result.makespan, result.bound.value);
  result.evaluations = proposal.evaluations;
  result.seed = options.seed;
  return result;
}

}  // namespace doppler
