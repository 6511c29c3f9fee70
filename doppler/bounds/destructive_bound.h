#pragma once

#include "doppler/bounds/relaxation.h"

namespace doppler {

// What follows from the assumption that an execution takes at most some makespan.
struct Consequences {
  bool contradiction = false;          // there is no such execution
  std::vector<Seconds> head;           // no op starts earlier
  std::vector<Seconds> tail;           // no op ends later than this before the end
  std::vector<std::uint32_t> cluster;  // ops with the same number share a device
};
// `head` and `tail` are valid without the assumption.
Consequences assume_makespan(const Relaxation& relaxation, const std::vector<Seconds>& head,
                             const std::vector<Seconds>& tail, Seconds makespan);

// Starting from `known`, a proven lower bound, the largest makespan found that leads to a contradiction: no
// execution is that short. Tries at most `attempts` makespans.
Seconds destructive_bound(const Relaxation& relaxation, const std::vector<Seconds>& head,
                          const std::vector<Seconds>& tail, Seconds known, int attempts);

}  // namespace doppler
