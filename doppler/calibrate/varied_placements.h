#pragma once

#include <functional>
#include <string>
#include <vector>

#include "doppler/base/rng.h"
#include "doppler/problem.h"

namespace doppler {

struct VariedPlacement {
  std::string origin;  // "random", "heft", "policy", …
  Placement placement;
};

// Where placements that are better than chance come from. They are functions, because calibration lies below the
// methods that place.
struct PlacementSources {
  struct Method {
    std::string name;
    std::function<Placement(std::uint64_t seed)> place;
  };
  std::vector<Method> methods;  // each is asked once
  // A learned policy, which answers differently to other seeds.
  std::function<Placement(std::uint64_t seed)> policy;
};

// Returns placements of one problem from bad to good, to compare predictions with: a third at random (balanced and
// lopsided), one of each method, and the rest from the policy with other seeds, two thirds of them with ops moved at
// random. No two have the same predicted makespan: a prediction that does not differ cannot be ranked. There may be
// fewer than `count` of a tiny graph.
std::vector<VariedPlacement> varied_placements(const Problem& problem, const PlacementSources& sources,
                                               std::size_t count, std::uint64_t seed);

// Draws a device for each op, each device with a probability of its own; ops of one group stay together.
Placement random_placement(const Problem& problem, Rng& rng);

}  // namespace doppler
