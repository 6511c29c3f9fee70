#include "doppler/simulate.h"

#include "doppler/api/judge.h"

namespace doppler {

SimulationResult simulate(const Problem& problem, const Placement& placement) {
  check_allowed("placement", problem, placement);
  return simulate(problem, placement, ExactObjective(problem).simulate(placement));
}

SimulationResult simulate(const Problem& problem, const Placement& placement, const Timeline& timeline) {
  Outcome outcome = outcome_of(problem, problem.graph().title(), lower_bound(problem));
  outcome.made.makespan = timeline.makespan;
  outcome.gap = gap(timeline.makespan, outcome.made.lower_bound);
  outcome.feasible = timeline.feasible();
  outcome.optimal = timeline.feasible() && reaches(timeline.makespan, outcome.made.lower_bound);
  add_expectation(outcome, problem, placement);
  return simulation_result(std::move(outcome), problem, timeline);
}

}  // namespace doppler
