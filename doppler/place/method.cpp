#include "doppler/method.h"

#include <algorithm>
#include <chrono>

#include "doppler/base/error.h"
#include "doppler/base/similar.h"
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
#include "doppler/place/memory.h"
#include "doppler/place/partition/enumerative.h"
#include "doppler/place/partition/metis.h"
#include "doppler/place/search/anneal.h"
#include "doppler/place/search/portfolio.h"
#include "doppler/place/simplify.h"

namespace doppler {

std::span<const Method> methods() {
  using Family = Method::Family;
  static constexpr Method kMethods[] = {
      {"single", "everything on the best single device; nothing if none can run and hold it", Family::list, false,
       single},
      {"near_single", "the same, but what the device cannot run or hold goes elsewhere", Family::list, false,
       near_single},
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
      {"doppler", "the learned dual policy, or the best of heft, etf, enumerative and single if that wins",
       Family::learned, false, learned},
      {"hsdag", "learned clusters, one device each; needs --train or --checkpoint", Family::learned, false, learned},
      {"hsdag+", "the same, coarse to fine; needs --train or --checkpoint", Family::learned, false, learned},
      {"placeto", "a placement improved op by op; needs --train or --checkpoint", Family::learned, false, learned},
      {"gdp", "all devices in one shot by attention over segments; needs --train or --checkpoint", Family::learned,
       false, learned},
      {"rnn", "a sequence of groups to a sequence of devices; needs --train or --checkpoint", Family::learned, false,
       learned},
      {"auto", "all cheap methods and the learned policy, then annealing from the best of them", Family::search, true,
       portfolio},
  };
  return kMethods;
}

const Method& method_by_name(std::string_view name) {
  std::string names;
  std::vector<std::string> known;
  for (const Method& method : methods()) {
    if (method.name == name) return method;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", method.name);
    known.emplace_back(method.name);
  }
  throw InputError(fmt::format("method: found '{}'; required one of {}{}", name, names, did_you_mean(name, known)));
}

std::string learned_methods() {
  std::string names;
  for (const Method& method : methods())
    if (method.family == Method::Family::learned) names += fmt::format("{}{}", names.empty() ? "" : ", ", method.name);
  return names;
}

namespace {

constexpr OpId kManyOps = 4096;              // with fewer, one simulation takes no time worth mentioning
constexpr double kMostForExpectation = 0.2;  // of the time
constexpr double kSimplifyShare = 0.1;       // of the time

// What a method's answer still needs when the method is done.
struct AfterTheMethod {
  Seconds simulation = 0;
  std::size_t draws = Draws{}.count;  // for the expected makespan
  Seconds in_all() const { return simulation * static_cast<double>(1 + draws); }
};

// The answer when there is no time for any other.
Proposal cheapest(const Problem& problem) {
  Proposal proposal;
  proposal.placement = fill_by_memory(problem);
  proposal.winner = "memory_greedy";
  return proposal;
}

// One simulation of the cheapest answer tells how long all others will take.
AfterTheMethod plan(Objective& objective, const Budget& budget) {
  const Problem& problem = objective.problem();
  AfterTheMethod after;
  if (!problem.machine().jitter().varies()) after.draws = 0;
  if (!budget.has_deadline() || problem.op_count() < kManyOps) return after;
  const Seconds before = budget.time_left();
  objective.simulate(cheapest(problem).placement, budget);
  after.simulation = before - budget.time_left();
  const double affordable = std::max(0.0, kMostForExpectation * budget.time_left() / after.simulation);
  if (affordable < static_cast<double>(after.draws)) after.draws = 0;  // Means of fewer draws compare with no others.
  return after;
}

}  // namespace

Result place(Objective& objective, const Method& method, const MethodOptions& options, const LowerBound& bound) {
  const auto start = std::chrono::steady_clock::now();
  if (options.on_progress) options.on_progress({method.name});
  const Problem& problem = objective.problem();
  // What is refused is refused whether or not there is time.
  if (method.family == Method::Family::learned && options.policy != nullptr) options.policy->check(problem);
  MethodOptions within = options;
  // The mean of a few draws may be below a bound on exact times.
  within.known_bound = objective.exact() ? std::max(options.known_bound, bound.value) : 0;
  AfterTheMethod after;
  Proposal proposal;
  bool in_time = true;
  try {
    after = plan(objective, options.budget);
    within.budget = options.budget.shifted_by(-after.in_all());
    const Budget with_simplifying = within.budget;
    if (options.tolerance && within.budget.has_deadline())
      within.budget = within.budget.shifted_by(-kSimplifyShare * std::max(0.0, within.budget.time_left()));
    proposal = method.run(problem, objective, within);
    if (options.start && objective.fits_in_memory(*options.start, with_simplifying) &&
        objective.value(*options.start) < objective.value(proposal.placement))
      proposal = {.placement = *options.start, .evaluations = proposal.evaluations, .winner = "start"};
    if (options.tolerance)
      proposal =
          simplify(objective, std::move(proposal), {.tolerance = *options.tolerance, .budget = with_simplifying});
  } catch (const OutOfTime&) {
    in_time = false;
    after.draws = 0;
    proposal = cheapest(problem);
  }
  Result result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  verify(problem, proposal.placement);
  result.timeline = objective.simulate(proposal.placement);
  if (!in_time && result.timeline.overflow)
    throw InfeasibleError(
        fmt::format("{}: time was up before '{}' found a placement that fits in memory; required "
                    "more time",
                    problem.graph().title(), method.name));
  if (after.draws > 0 && !options.budget.interrupted())
    result.expected = expectation_of(problem, proposal.placement, after.draws);
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
