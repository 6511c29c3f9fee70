#include "doppler/sim/expected_makespan.h"

#include "doppler/base/rng.h"
#include "doppler/base/statistics.h"
#include "doppler/sim/simulator.h"

namespace doppler {

double expected_noise(const Problem& problem) {
  return problem.rules().noise > 0 ? problem.rules().noise : problem.machine().jitter();
}

std::vector<Seconds> expected_makespans(const Problem& problem, std::span<const Placement> placements, double noise) {
  Rules rules = problem.rules();
  rules.noise = noise;
  if (noise > 0) rules.ties = Ties::by_id;  // times that vary do not tie
  std::vector<std::vector<Seconds>> draws(placements.size());
  for (std::size_t draw = 0; draw < (noise > 0 ? kExpectedDraws : 1); ++draw) {
    if (noise > 0) rules.seed = mix(problem.rules().seed, draw);
    const Problem drawn(problem.costs(), rules);  // one at a time: tables of large graphs are large
    Simulator simulator(drawn);
    for (std::size_t i = 0; i < placements.size(); ++i) draws[i].push_back(simulator.makespan(placements[i]));
  }
  std::vector<Seconds> result;
  for (std::vector<Seconds>& times : draws) result.push_back(median(std::move(times)));
  return result;
}

Seconds expected_makespan(const Problem& problem, const Placement& placement, double noise) {
  return expected_makespans(problem, std::span(&placement, 1), noise)[0];
}

}  // namespace doppler
