#pragma once

#include <optional>

#include "doppler/sim/simulator.h"

namespace doppler {

// Placement in, time out: what a learner or a search optimises. The simulator is one, the engine another.
class Oracle {
 public:
  virtual ~Oracle() = default;
  virtual Seconds evaluate(const Placement& placement) = 0;
  // What happened in the last evaluation, if the oracle keeps that.
  virtual std::optional<Timeline> timeline() const { return std::nullopt; }
};

class SimulatorOracle final : public Oracle {
 public:
  explicit SimulatorOracle(const Problem& problem) : simulator_(problem) {}
  Seconds evaluate(const Placement& placement) override { return simulator_.makespan(placement); }

 private:
  Simulator simulator_;
};

}  // namespace doppler
