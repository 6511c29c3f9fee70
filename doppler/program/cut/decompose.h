#pragma once

#include <string>
#include <vector>

#include "doppler/program/lower/lower.h"

namespace doppler::program {

// What a plan costs, were the devices to work through the expressions one after the other, each spread over
// all of them. The mathematics stands in plan_cost.h. Overlap between expressions is the simulator's
// business, so `seconds` ranks plans; it is no prediction.
struct PlanCost {
  Seconds seconds = 0;
  Seconds compute = 0;  // the part of `seconds` that is not communication
  double moved = 0;     // bytes between devices
  double messages = 0;
  double resident = 0;  // bytes of resident inputs over all devices, copies included
};

struct DecomposeOptions {
  Index parts = 4;        // most blocks per expression; every expression has a divisor of it
  Index devices = 0;      // 0: as many as parts
  Speeds speeds = {};     // with Speeds::memory the resident inputs must fit, on average over devices
  std::size_t plans = 1;  // how many different plans to return
};

struct Decomposition {
  Plan plan;
  PlanCost cost;
};

PlanCost estimate(const Program& program, const Plan& plan, const DecomposeOptions& options);

// EinDecomp: a box for every expression so that the estimate is small. Plans are distinct and sorted by
// seconds; there may be fewer than asked for. Throws InfeasibleError if no plan fits in memory.
//
// Each expression is a variable whose values are the boxes with d | parts blocks; costs are per variable and
// per edge. A spanning forest of the heaviest edges is solved exactly by dynamic programming, then induced
// forests are solved exactly, with the rest fixed, until none improves; so too from the plans that cut a
// single label throughout. Exact on trees; the best of these local optima elsewhere. Expressions with more
// than 256 boxes keep the 256 that would be cheapest if all their inputs came cut to measure.
std::vector<Decomposition> decompose(const Program& program, const DecomposeOptions& options);

// The usual suspects. Data parallel cuts the first dimension of the first data input that has `parts`
// elements, and what follows from it. Model parallel cuts weights: by an output label where the data is
// whole, by the reduced label where it is cut already (Megatron's column and row).
Plan data_parallel(const Program& program, Index parts);
Plan model_parallel(const Program& program, Index parts);

}  // namespace doppler::program
