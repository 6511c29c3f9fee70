#pragma once

#include <vector>

#include "doppler/problem.h"
#include "doppler/timeline.h"

namespace doppler {

// One step of the chain that explains a makespan: an op that ran or a tensor that travelled.
struct ChainStep {
  enum class Waits : std::uint8_t {
    nothing,   // it began with the run
    data,      // for a result of its own device
    transfer,  // for a tensor to arrive
    device,    // its inputs were there, but the device was busy
    channel,   // the tensor was there, but the link was busy
    barrier,   // for the level before it (bulk-synchronous)
  };
  bool is_transfer = false;
  OpId op = 0;  // that ran, or whose result travelled
  TensorId tensor = 0;
  DeviceId src = 0, dst = 0;  // the same for an op
  Seconds start = 0, end = 0;
  Waits waits = Waits::nothing;  // why it did not begin earlier
};
std::string_view to_string(ChainStep::Waits waits);

// From the beginning of the run to its end: each step ends when the next one begins, but for gaps that nobody explains.
// One of possibly many chains.
std::vector<ChainStep> critical_chain(const Problem& problem, const Timeline& timeline);

}  // namespace doppler
