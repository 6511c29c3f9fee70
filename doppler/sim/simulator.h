#pragma once

#include <memory>
#include <span>
#include <vector>

#include "doppler/budget.h"
#include "doppler/machine/jitter.h"
#include "doppler/problem.h"
#include "doppler/timeline.h"

namespace doppler {

// Work-conserving discrete-event simulation of placements of one problem.
//
// A device with a free slot and a ready op runs one; an op is ready when its last input is on its device; a
// tensor needed elsewhere is moved once per destination. docs/simulator.md has the rules with their
// tie-breaks.
//
// Not thread-safe: one Simulator per thread.
class Simulator {
 public:
  // With a draw, every op and transfer takes its time times its factor.
  explicit Simulator(const Problem& problem, const JitterDraw& draw = {});
  ~Simulator();
  Simulator(Simulator&&) noexcept;

  // The fast path: allocates nothing. `device_of_op` must be allowed by the problem. `priority` is a
  // permutation (Placement::priority) or empty; only the disciplines `priority` and `ordered` read it.
  // Ignores memory.
  Seconds makespan(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority = {});
  Seconds makespan(const Placement& placement) { return makespan(placement.device_of_op, placement.priority); }

  // A chain of ops that explains the makespan, last first: each op waited for the next one in the list, for its output
  // or for the device. Ties and queues on links are settled by guess.
  void critical_chain(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority,
                      std::vector<OpId>& chain);

  // Whether no device ever needs more memory than it has. Quick where memory is plentiful. Throws OutOfTime.
  bool fits_in_memory(const Placement& placement, const Budget& budget = Budget::unlimited());

  // The whole story, with memory. Same makespan, to the bit. Throws OutOfTime.
  Timeline simulate(const Placement& placement, const Budget& budget = Budget::unlimited());

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace doppler
