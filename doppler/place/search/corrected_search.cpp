#include "doppler/place/search/corrected_search.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/place/list/heft.h"
#include "doppler/place/search/anneal.h"
#include "doppler/sim/expected_makespan.h"

namespace doppler {
namespace {

// Where the ops of the problem may go, on another machine.
std::vector<Pin> pins_of(const Problem& problem) {
  std::vector<Pin> pins;
  for (OpId op = 0; op < problem.op_count(); ++op)
    if (problem.pinned(op)) pins.emplace_back(op, problem.devices(op).front());
  return pins;
}

// Times vary more than a machine says: its model is wrong somewhere, too.
constexpr double kLeastNoise = 0.1;

std::vector<Placement> find_candidates(const Problem& corrected, const Placement& incumbent, const Advice& policy,
                                       MethodOptions method) {
  std::vector<Placement> candidates = {incumbent};
  const auto add = [&](auto find) {
    try {
      candidates.push_back(find().placement);
    } catch (const InfeasibleError&) {
      // The incumbent fits in memory; others need not.
    }
  };
  if (policy) add([&] { return policy(corrected, method); });
  add([&] { return heft(corrected, method); });
  std::vector<Placement> starts = candidates;
  const Budget all = method.budget;
  method.budget = all.share(0.5);
  add([&] { return anneal_from(corrected, method, starts); });
  if (starts.size() > 1) starts.erase(starts.begin());  // once without the incumbent, which may be a trap
  if (all.has_deadline()) method.budget = all;
  method.seed = mix(method.seed, 1);
  add([&] { return anneal_from(corrected, method, starts); });
  return candidates;
}

}  // namespace

Suggestion search_corrected(const DeviceRatios& ratios, const Problem& problem, const Placement& incumbent,
                            const Advice& policy, const MethodOptions& options) {
  const Machine machine = ratios.corrected();
  const Costs costs(problem.graph(), machine);
  const std::vector<Pin> pins = pins_of(problem);
  Rules rules = problem.rules();
  rules.noise = 0;  // a search wants one answer per placement
  const Problem corrected(costs, rules, pins);
  std::vector<Placement> candidates = find_candidates(corrected, incumbent, policy, options);
  for (const Placement& candidate : candidates) verify(problem, candidate);
  const double noise = std::max(kLeastNoise, expected_noise(problem));
  const std::vector<Seconds> predicted = expected_makespans(corrected, candidates, noise);
  const auto best = static_cast<std::size_t>(std::min_element(predicted.begin(), predicted.end()) - predicted.begin());
  return {std::move(candidates[best]), predicted[best], predicted[0]};  // the first is the incumbent
}

}  // namespace doppler
