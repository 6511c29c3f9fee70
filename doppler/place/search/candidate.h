#pragma once

#include <string>

#include "doppler/costs.h"
#include "doppler/placement.h"

namespace doppler {

// A placement and what it is worth by an objective. Every search keeps its best so far as one; of equals the first.
struct Candidate {
  Placement placement;
  Seconds value = Costs::kNever;  // infinite: there is none yet
  std::string winner = {};        // who found it, where others are asked

  bool empty() const { return value == Costs::kNever; }
};

}  // namespace doppler
