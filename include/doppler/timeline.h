#pragma once

// When everything happened in one run, simulated or real.
//
//   const doppler::Timeline timeline = doppler::ExactObjective(problem).simulate(placement);   // objective.h
//   for (const doppler::Timeline::Execution& run : timeline.executions)
//     std::cout << problem.graph().name(run.op) << " " << run.start << " " << run.end << "\n";
//
// Limits. A run that is infeasible goes on to its end all the same; `overflow` says where memory was first exceeded.

#include <optional>
#include <string>
#include <vector>

#include "doppler/ids.h"
#include "doppler/units.h"

namespace doppler {

// What happened when: filled by the simulator, and by the engine when it runs for real.
struct Timeline {
  struct Execution {
    OpId op;
    DeviceId device;
    std::uint32_t slot;
    Seconds ready, start, end;  // ready: last input arrived
  };
  struct Transfer {
    TensorId tensor;
    DeviceId src, dst;
    std::uint32_t channel;
    Seconds queued, start, end;  // queued: the producer finished
  };
  struct Overflow {
    OpId op;  // the op at whose start (or whose input's arrival) the capacity was first exceeded
    DeviceId device;
    Bytes needed, capacity;
  };

  Seconds makespan = 0;
  std::vector<Execution> executions;  // by start, then device, then op
  std::vector<Transfer> transfers;    // by start, then tensor, then destination
  std::vector<Bytes> peak_memory;     // per device: parameters + live tensors
  std::vector<Seconds> busy;          // per device: total execution time over its slots
  // Per device, of real runs: how long its thread waited for a core that others had. Empty: nobody can have it.
  std::vector<Seconds> others = {};
  std::optional<Overflow> overflow;  // the first time that memory did not suffice; the run is then infeasible

  bool feasible() const { return !overflow.has_value(); }
};

}  // namespace doppler
