#pragma once

#include <span>
#include <vector>

#include "doppler/problem.h"
#include "doppler/timeline.h"

namespace doppler {

// Fills peak_memory, busy and overflow from the executions and transfers of a timeline, simulated or real.
//
// Parameters are resident all the time. A tensor lives on its producer's device from the producer's start
// until its last consumer there has ended and its last copy has left; on another device from the start of the
// transfer until its last consumer there has ended. A tensor that nobody reads is a result and stays. At one
// instant memory is released before it is taken.
void account_memory(const Problem& problem, Timeline& timeline);

// When the bytes in use on a device change, and to what; by time. What is released at an instant has gone before what is
// taken at it is there.
struct MemoryStep {
  Seconds time = 0;
  DeviceId device = 0;
  Bytes used = 0;
};
std::vector<MemoryStep> memory_over_time(const Problem& problem, const Timeline& timeline);

// True if every device could keep its parameters and every tensor that it ever sees all the time: then it fits whatever
// the timeline, which need not be known. False does not mean that it does not fit.
bool surely_fits(const Problem& problem, std::span<const DeviceId> device_of_op);

}  // namespace doppler
