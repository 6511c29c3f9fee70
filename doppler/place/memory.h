#pragma once

#include "doppler/method.h"

namespace doppler {

// The inputs and outputs of an op, which are all live while it runs; 0 for an op that takes no time.
Bytes working_set(const Costs& costs, OpId op);
// Of a device; the largest number if it is unlimited.
Bytes memory_capacity(const Problem& problem, DeviceId device);

// The memory that a device certainly needs for the units placed on it so far: all their parameters, and
// beside them either the working set of one of its ops or, at the end, all the tensors that nobody reads.
// Cheap and necessary, hence the rule while placing; not sufficient, because tensors also wait for their
// consumers. What waits depends on the times, so only a simulation of the whole placement tells, and
// fit_in_memory() repairs what it finds.
class StaticMemory {
 public:
  explicit StaticMemory(const Problem& problem);

  // Whether the unit of `op` can still be added to the device.
  bool fits(OpId op, DeviceId device) const { return excess(op, device) == 0; }
  // By how much it would be too large there.
  Bytes excess(OpId op, DeviceId device) const;
  // The allowed device with the smallest excess.
  DeviceId least_excess(OpId op) const;
  void add(OpId op, DeviceId device);

  // Of the whole unit of `op`: an upper estimate of what moving it elsewhere frees.
  Bytes footprint(OpId op) const;

 private:
  struct Need {
    Bytes parameters = 0;   // of all ops
    Bytes results = 0;      // of all ops: outputs that nobody reads
    Bytes working_set = 0;  // of the largest op
    Need operator+(const Need& other) const;
    Bytes total() const;
  };
  Problem problem_;
  // Per op, the first of a unit standing for it; empty if no device has a capacity.
  std::vector<Need> unit_;
  std::vector<Need> device_;
};

// Simulates the placement and, if tensors overflow a device, repairs it:
//   1. Off every device above its capacity, move the smallest unit that makes up for the excess (or the largest,
//      and then more) to the allowed device with most room; simulate again. Each unit moves at most once.
//   2. If that fails, the same from placements that need little memory: devices filled in topological order, and
//      everything on one device.
// Moved ops have the cause `memory`. Throws InfeasibleError, naming op, device, need and capacity, if nothing
// fits; this is a heuristic, so only an op that fits on none of its devices by itself, or more to keep to the end than
// all devices hold, is proof that nothing can. Throws OutOfTime if time is up first.
Proposal fit_in_memory(Objective& objective, Proposal proposal, const Budget& budget);

// Devices filled in topological order, each to the same fraction of its capacity, counting everything that is ever
// produced on it.
Placement fill_by_memory(const Problem& problem);

}  // namespace doppler
