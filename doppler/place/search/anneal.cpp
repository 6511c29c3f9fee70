#include "doppler/place/search/anneal.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "doppler/base/error.h"
#include "doppler/base/parallel.h"
#include "doppler/place/list/heft.h"
#include "doppler/place/list/simple_placements.h"
#include "doppler/place/list/single.h"
#include "doppler/place/memory.h"
#include "doppler/place/search/anneal_by_draws.h"
#include "doppler/place/search/chain.h"

namespace doppler {
namespace {

// By experiment on the published graphs, where they are not critical.
constexpr unsigned kChains = 4;         // at most; not by the number of threads, on which results must not depend
constexpr double kStepsPerChain = 800;  // per op: with less than this for each, fewer chains do better
constexpr double kFewEvaluations = 20;  // a search costs as much before it begins
constexpr double kGiven = 1e-3;         // the first heat from given placements: they are not to be melted

void sort_by_value(std::vector<Placement>& placements, Objective& objective) {
  std::vector<std::pair<Seconds, Placement>> sorted;
  for (Placement& placement : placements) {
    const Seconds value = objective.value(placement);
    sorted.emplace_back(value, std::move(placement));
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < sorted.size(); ++i) placements[i] = std::move(sorted[i].second);
}

// On a short budget one chain gets further than several that begin alike and stop half-way. How short a time is, is
// known by the time of one evaluation. 0: too short for anything.
unsigned chain_count(const MethodOptions& options, const Placement& start, Objective& objective) {
  const Budget& budget = options.budget;
  double affordable =
      budget.evaluations() == Budget::kUnlimited ? Costs::kNever : static_cast<double>(budget.evaluations());
  if (budget.has_deadline()) {
    const Seconds before = budget.time_left();
    objective.value(start);
    const Seconds after = budget.time_left();
    affordable = std::min(affordable, options.threads * after / std::max(before - after, 1e-9));
    if (affordable < kFewEvaluations) return 0;
  }
  const double chains = affordable / (kStepsPerChain * static_cast<double>(start.device_of_op.size()));
  const auto count = static_cast<unsigned>(std::clamp(chains, 1.0, static_cast<double>(kChains)));
  // Against a deadline idle threads would be wasted.
  return budget.evaluations() == Budget::kUnlimited ? std::max(count, std::min(options.threads, kChains)) : count;
}

Proposal run_chains(const Problem& problem, Objective& objective, const MethodOptions& options,
                    std::vector<Placement> starts, double first_heat) {
  DOPPLER_CHECK(!starts.empty(), "no placement to start from");
  sort_by_value(starts, objective);
  const unsigned count = chain_count(options, starts.front(), objective);
  const Rng rng(options.seed);
  const std::uint64_t total = options.budget.evaluations();
  const std::uint64_t each =
      total == Budget::kUnlimited ? total : std::max<std::uint64_t>(total / std::max(count, 1u), 1);
  std::vector<std::unique_ptr<Chain>> chains(count);
  Candidate best;
  const auto meet = [&] {
    for (const auto& chain : chains)
      if (chain->best().value < best.value) best = chain->best();
  };
  const auto evaluations = [&] {
    std::uint64_t sum = 0;
    for (const auto& chain : chains) sum += chain->evaluations();
    return sum;
  };
  parallel_for(count, options.threads, [&](unsigned i) {
    chains[i] = std::make_unique<Chain>(problem, objective.another(), options, rng.split(i), each, first_heat);
    // Its share of the starts; it goes on from the last, the best.
    for (std::size_t start = starts.size(); start-- > 0;)
      if (start % count == i % starts.size()) chains[i]->begin(starts[start]);
  });
  meet();
  while (!options.budget.out_of_time() && !reaches(best.value, options.known_bound) &&
         std::any_of(chains.begin(), chains.end(), [](const auto& chain) { return !chain->exhausted(); })) {
    parallel_for(count, options.threads, [&](unsigned i) { chains[i]->round(best); });
    meet();
    if (options.on_progress) options.on_progress({"anneal", best.value, evaluations()});
  }

  Proposal proposal;
  proposal.evaluations = evaluations();
  const bool fits = !best.empty();
  proposal.placement = fits ? std::move(best.placement) : starts.front();
  proposal.placement.cause_of_op.resize(problem.op_count());
  for (OpId op = 0; op < problem.op_count(); ++op)
    proposal.placement.cause_of_op[op] = cause_of(problem, op, Cause::search);
  if (!fits && count > 0) return fit_in_memory(objective, std::move(proposal), options.budget);
  if (problem.memory_limited()) ++proposal.evaluations;  // the one by which it is known to fit
  return proposal;
}

}  // namespace

Proposal anneal_from(const Problem& problem, Objective& objective, const MethodOptions& options,
                     const std::vector<Placement>& starts) {
  if (objective.drawn()) return anneal_by_draws(problem, objective, options, starts);
  return run_chains(problem, objective, options, starts, kGiven);
}

Proposal anneal(const Problem& problem, Objective& objective, const MethodOptions& options) {
  std::vector<Placement> starts;
  for (const auto start : {heft, near_single}) {
    try {
      starts.push_back(start(problem, objective, options).placement);
    } catch (const OutOfTime&) {
      if (starts.empty() && start == near_single) throw;
    }
  }
  if (objective.drawn()) return anneal_by_draws(problem, objective, options, starts);
  return run_chains(problem, objective, options, starts, Chain::kHottest);
}

}  // namespace doppler
