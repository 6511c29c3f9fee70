#pragma once

#include <span>
#include <vector>

#include "doppler/problem/problem.h"

namespace doppler {

// How much times vary: as much as the rules say or, if they say nothing, the machine (Machine::jitter).
double expected_noise(const Problem& problem);

inline constexpr std::size_t kExpectedDraws = 31;

// What placements take if the times of all ops and transfers vary by a lognormal factor of sigma `noise`, as they do for
// real: the median over simulations, whose draws are the same for all placements and follow from the rules' seed. Without
// noise it is one simulation. Two devices that wait for one another wait for the slower one, so that this is more than the
// exact makespan, by little if a placement leaves some slack.
std::vector<Seconds> expected_makespans(const Problem& problem, std::span<const Placement> placements, double noise);
Seconds expected_makespan(const Problem& problem, const Placement& placement, double noise);

}  // namespace doppler
