#pragma once

#include <string>
#include <vector>

#include "doppler/base/rng.h"
#include "doppler/place/learned.h"

namespace doppler {

struct VariedPlacement {
  std::string origin;  // "random", "heft", "policy", …
  Placement placement;
};

// Placements of one problem from bad to good, to compare predictions with: a third at random (balanced and lopsided),
// the classical methods, and the rest from the learned policy with other seeds, two thirds of them with ops moved at
// random. No two have the same predicted makespan: a prediction that does not differ cannot be ranked. There may be
// fewer than `count` of a tiny graph.
std::vector<VariedPlacement> varied_placements(const Problem& problem, const LearnedPolicy& policy, std::size_t count,
                                               std::uint64_t seed);

// Each device with its own probability; ops of one group stay together.
Placement random_placement(const Problem& problem, Rng& rng);

}  // namespace doppler
