#include "doppler/place/search/portfolio.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/place/learned.h"
#include "doppler/place/list/critical_path.h"
#include "doppler/place/list/etf.h"
#include "doppler/place/list/heft.h"
#include "doppler/place/list/memory_greedy.h"
#include "doppler/place/list/single.h"
#include "doppler/place/partition/enumerative.h"
#include "doppler/place/partition/metis.h"
#include "doppler/place/search/anneal.h"
#include "doppler/sim/expected_makespan.h"
#include "doppler/sim/simulator.h"

namespace doppler {
namespace {

struct Entry {
  std::string_view name;
  Proposal (*run)(const Problem&, const MethodOptions&);
  double share;  // of the budget that is left
  bool always;   // even if time is up: `auto` promises never to be worse, and they are quick
};
Proposal policy(const Problem& problem, const MethodOptions& options) {
  return options.policy->zero_shot(problem, options);
}

// The fast ones first, so that a short budget has an answer early.
constexpr Entry kCheap[] = {
    {"heft", heft, 0.2, true},
    {"single", single, 0.1, true},
    {"etf", etf, 0.2, true},
    {"metis", metis, 0.2, true},
    {"doppler", policy, 0.2, false},
    {"critical_path", critical_path, 0.05, false},
    {"enumerative", enumerative, 0.1, false},
    {"memory_greedy", memory_greedy, 0.1, false},
};
constexpr std::size_t kStarts = 3;  // of the annealer
// Annealings, where times vary: each optimises exact times, and of several optima one survives better than another.
constexpr unsigned kTriesWithJitter = 4;
// The policy keeps a few numbers per op and device; beyond this many pairs that is too much memory for a guess.
constexpr std::uint64_t kLargestForPolicy = 20'000'000;

struct Candidate {
  std::string_view name;
  Placement placement;
  Seconds makespan;
};

// The one to expect most of.
std::size_t most_robust(const Problem& problem, const std::vector<Candidate>& candidates) {
  std::vector<Placement> placements;
  for (const Candidate& candidate : candidates) placements.push_back(candidate.placement);
  const std::vector<Seconds> expected = expected_makespans(problem, placements, problem.machine().jitter());
  return static_cast<std::size_t>(std::min_element(expected.begin(), expected.end()) - expected.begin());
}

}  // namespace

Proposal portfolio(const Problem& problem, const MethodOptions& options) {
  const bool varies = problem.rules().noise == 0 && problem.machine().jitter() > 0;
  Simulator simulator(problem);
  std::vector<Candidate> candidates;
  std::uint64_t evaluations = 0;
  const auto consider = [&](std::string_view name, Proposal proposal) {
    evaluations += proposal.evaluations + 1;
    const Seconds makespan = simulator.makespan(proposal.placement);
    candidates.push_back({name, std::move(proposal.placement), makespan});
    // Stable: among equals the earlier method is named.
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.makespan < b.makespan; });
    if (options.on_progress) options.on_progress({name, candidates.front().makespan, evaluations});
  };
  const auto optimal = [&] { return !candidates.empty() && reaches(candidates.front().makespan, options.known_bound); };
  const auto done = [&] { return !candidates.empty() && (options.budget.out_of_time() || optimal()); };

  std::string why_not;
  const bool too_large = std::uint64_t{problem.op_count()} * problem.device_count() > kLargestForPolicy;
  for (const auto& [name, run, share, always] : kCheap) {
    if (done() && !(always && !optimal() && !options.budget.interrupted())) continue;
    if (run == policy && (options.policy == nullptr || too_large)) continue;
    MethodOptions part = options;
    part.budget = options.budget.share(share);
    part.on_progress = nullptr;
    try {
      consider(name, run(problem, part));
    } catch (const InfeasibleError& error) {
      if (why_not.empty()) why_not = error.what();
    }
  }
  if (candidates.empty()) throw InfeasibleError(why_not);
  if (!done()) {
    std::vector<Placement> starts;
    for (const Candidate& candidate : candidates)
      if (starts.size() < kStarts) starts.push_back(candidate.placement);
    for (unsigned tries = varies ? kTriesWithJitter : 1; tries > 0 && !done(); --tries) {
      MethodOptions rest = options;
      rest.budget = options.budget.less(evaluations).share(1.0 / tries);
      if (varies) rest.seed = mix(options.seed, tries);
      consider("anneal", anneal_from(problem, rest, starts));
    }
  }

  Candidate& best = candidates[varies ? most_robust(problem, candidates) : 0];
  Proposal proposal;
  proposal.placement = std::move(best.placement);
  proposal.winner = best.name;
  proposal.evaluations = evaluations;
  return proposal;
}

}  // namespace doppler
