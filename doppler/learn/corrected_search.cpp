#include "doppler/learn/corrected_search.h"

#include <memory>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/base/statistics.h"
#include "doppler/place/anneal.h"
#include "doppler/place/heft.h"
#include "doppler/sim/simulator.h"

namespace doppler {
namespace {

// Where the ops of the problem may go, on another machine.
std::vector<Pin> pins_of(const Problem& problem) {
  std::vector<Pin> pins;
  for (OpId op = 0; op < problem.op_count(); ++op)
    if (problem.pinned(op)) pins.emplace_back(op, problem.devices(op).front());
  return pins;
}

Rules with_noise(Rules rules, double noise, std::uint64_t seed) {
  rules.noise = noise;
  rules.seed = seed;
  return rules;
}

// What placements take in the corrected simulator if times vary a little, as they do: the median over a few draws, the
// same for all. A search optimises exact times and may end with a placement that falls apart when they are not.
class VariedSimulator {
 public:
  VariedSimulator(const Costs& costs, const Rules& rules, const std::vector<Pin>& pins) {
    for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
      problems_.push_back(std::make_unique<Problem>(costs, with_noise(rules, kNoise, draw), pins));
      simulators_.emplace_back(*problems_.back());
    }
  }
  Seconds makespan(const Placement& placement) {
    std::vector<Seconds> times;
    for (Simulator& simulator : simulators_) times.push_back(simulator.makespan(placement));
    return median(std::move(times));
  }

 private:
  static constexpr std::uint64_t kDraws = 9;
  static constexpr double kNoise = 0.1;  // sigma of every op and transfer
  std::vector<std::unique_ptr<Problem>> problems_;
  std::vector<Simulator> simulators_;
};

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
  const Problem corrected(costs, with_noise(problem.rules(), 0, problem.rules().seed), pins);
  VariedSimulator simulator(costs, problem.rules(), pins);
  const Seconds before = simulator.makespan(incumbent);
  Suggestion best{incumbent, before, before};
  for (Placement& candidate : find_candidates(corrected, incumbent, policy, options)) {
    verify(problem, candidate);
    const Seconds predicted = simulator.makespan(candidate);
    if (predicted < best.predicted) best.placement = std::move(candidate), best.predicted = predicted;
  }
  return best;
}

}  // namespace doppler
