#pragma once

#include "doppler/sim/simulator.h"

namespace doppler {

// Placement in, time out: what a learner or a search optimises. The simulator is one; the engine will be
// another.
class Oracle {
 public:
  virtual ~Oracle() = default;
  virtual Seconds evaluate(const Placement& placement) = 0;
};

class SimulatorOracle final : public Oracle {
 public:
  explicit SimulatorOracle(const Problem& problem) : simulator_(problem) {}
  Seconds evaluate(const Placement& placement) override { return simulator_.makespan(placement); }

 private:
  Simulator simulator_;
};

}  // namespace doppler
