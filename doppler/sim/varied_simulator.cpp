#include "doppler/sim/varied_simulator.h"

#include "doppler/base/statistics.h"

namespace doppler {

VariedSimulator::VariedSimulator(const Problem& problem)
    : VariedSimulator(problem, problem.rules().noise > 0 ? problem.rules().noise : problem.machine().jitter()) {}

VariedSimulator::VariedSimulator(const Problem& problem, double noise) : noise_(noise) {
  Rules rules = problem.rules();
  rules.noise = noise;
  for (std::size_t draw = 0; draw < (noise > 0 ? kDraws : 1); ++draw) {
    if (noise > 0) rules.seed = draw;
    problems_.push_back(std::make_unique<Problem>(problem.costs(), rules));
    simulators_.emplace_back(*problems_.back());
  }
}

Seconds VariedSimulator::makespan(const Placement& placement) {
  std::vector<Seconds> times;
  for (Simulator& simulator : simulators_) times.push_back(simulator.makespan(placement));
  return median(std::move(times));
}

}  // namespace doppler
