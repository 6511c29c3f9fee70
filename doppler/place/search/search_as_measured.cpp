#include "doppler/place/search/search_as_measured.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/place/list/heft.h"
#include "doppler/place/search/anneal.h"

namespace doppler {
namespace {

// Times vary more than a machine says: its model is wrong somewhere, too.
constexpr double kLeastJitter = 0.1;
constexpr std::size_t kDraws = 16;     // by which candidates are looked for; one is chosen by others
constexpr double kAdviceShare = 0.25;  // of the time, at most

std::vector<Placement> find_candidates(const Problem& corrected, std::vector<Placement> candidates,
                                       const Advice& policy, MethodOptions method, const Jitter& jitter) {
  ExpectedObjective objective(corrected, jitter, Draws{kDraws, Draws::searched});
  const auto add = [&](auto find) {
    try {
      candidates.push_back(find().placement);
    } catch (const InfeasibleError&) {
      // The incumbent fits in memory; others need not.
    } catch (const OutOfTime&) {
      // The incumbent is a candidate in any case.
    }
  };
  const Budget all = method.budget;
  if (all.has_deadline()) method.budget = all.share(kAdviceShare);
  if (policy) add([&] { return policy(corrected, objective, method); });
  method.budget = all;
  add([&] { return heft(corrected, objective, method); });
  std::vector<Placement> starts = candidates;
  method.budget = all.share(0.5);
  add([&] { return anneal_from(corrected, objective, method, starts); });
  if (starts.size() > 1) starts.erase(starts.begin());  // once without the incumbent, which may be a trap
  if (all.has_deadline()) method.budget = all;
  method.seed = mix(method.seed, 1);
  add([&] { return anneal_from(corrected, objective, method, starts); });
  return candidates;
}

}  // namespace

std::unique_ptr<Objective> corrected_objective(const TimeRatios& ratios, const Problem& problem) {
  const Jitter jitter = problem.machine().jitter().at_least(kLeastJitter);
  return std::make_unique<ExpectedObjective>(problem.on(ratios.corrected()), jitter, Draws{kDraws, Draws::searched});
}

Suggestion search_as_measured(const TimeRatios& ratios, const Problem& problem, std::vector<Placement> known,
                              const Advice& policy, const MethodOptions& options) {
  const Problem corrected = problem.on(ratios.corrected());
  const Jitter jitter = problem.machine().jitter().at_least(kLeastJitter);
  std::vector<Placement> candidates = find_candidates(corrected, std::move(known), policy, options, jitter);
  for (const Placement& candidate : candidates) verify(problem, candidate);
  ExpectedObjective expected(corrected, jitter);
  const std::vector<Seconds> predicted = expected.values(candidates);
  const auto best = static_cast<std::size_t>(std::min_element(predicted.begin(), predicted.end()) - predicted.begin());
  return {std::move(candidates[best]), predicted[best], predicted[0]};  // the first is the incumbent
}

}  // namespace doppler
