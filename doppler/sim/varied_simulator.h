#pragma once

#include <memory>
#include <vector>

#include "doppler/sim/simulator.h"

namespace doppler {

// What placements take if times vary, as they do for real: the median over simulations with noise, whose draws are the
// same for all placements. Without noise it is one simulation. A placement of which two devices have to be ready at the
// same moment takes longer than its exact simulation says, and one that leaves some slack does not.
class VariedSimulator {
 public:
  // As much as the rules or else the machine (Machine::jitter) say. Costs must outlive it, the problem need not.
  explicit VariedSimulator(const Problem& problem);
  VariedSimulator(const Problem& problem, double noise);

  Seconds makespan(const Placement& placement);
  double noise() const { return noise_; }

  static constexpr std::size_t kDraws = 31;

 private:
  double noise_;
  std::vector<std::unique_ptr<Problem>> problems_;
  std::vector<Simulator> simulators_;
};

}  // namespace doppler
