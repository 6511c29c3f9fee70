#pragma once

#include "doppler/base/rng.h"
#include "doppler/place/method.h"
#include "doppler/sim/simulator.h"

namespace doppler {

// The best placement that an exact search has seen, and what it may still spend. Internal to `exact`.
class Incumbent {
 public:
  Incumbent(const Problem& problem, const MethodOptions& options)
      : problem_(problem), options_(options), simulator_(problem) {}

  // Simulates; keeps the placement if it fits in memory and is the best so far.
  Seconds offer(const Placement& placement);
  // Counts one node of the search tree, about as expensive as a simulation. False: the budget is spent.
  bool spend();

  bool stopped() const { return stopped_; }
  bool found() const { return makespan_ < Costs::kNever; }
  Seconds makespan() const { return makespan_; }
  const Placement& placement() const { return placement_; }
  std::uint64_t evaluations() const { return evaluations_; }
  // True if nothing better can come from a branch with this lower bound, rounding aside.
  bool beats(Seconds bound) const { return bound >= makespan_ * (1 - 1e-12); }

 private:
  const Problem& problem_;
  const MethodOptions& options_;
  Simulator simulator_;
  Placement placement_;
  Seconds makespan_ = Costs::kNever;
  std::uint64_t evaluations_ = 0;
  bool stopped_ = false;
};

// A first placement: each op, by rank, where it ends earliest; then moves of units and of ranks that do not make it
// worse. Stops when `bound` is met.
void find_first_incumbent(const Problem& problem, const MethodOptions& options, Seconds bound, Incumbent& incumbent);

}  // namespace doppler
