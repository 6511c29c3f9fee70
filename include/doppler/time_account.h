#pragma once

// Why devices were idle.
//
//   for (const doppler::DeviceTime& device : doppler::account_time(problem, timeline))
//     std::cout << "waited for data " << device.data << " s of " << timeline.makespan << "\n";
//
// Limits. Devices of one slot; a gap has one cause, that of the input that came last.

#include <string_view>
#include <vector>

#include "doppler/problem.h"
#include "doppler/timeline.h"

namespace doppler {

// Where the time of one device went; the parts add up to the makespan (times its slots).
struct DeviceTime {
  Seconds busy = 0;
  Seconds copying = 0;  // its inputs, where receivers copy
  Seconds data = 0;     // waiting for another device's result, for it to travel, or (bulk-synchronous) for a barrier
  Seconds channel = 0;  // the result was there, but the link was busy or the destination had no space for a copy
  Seconds memory = 0;   // the inputs were there and the device was free, but it had no space for the results
  Seconds others = 0;   // real runs: it could have gone on, but another thread or process had its core
  Seconds done = 0;     // after its last op

  bool operator==(const DeviceTime&) const = default;
};

// A time in which a slot of a device did nothing, by what it waited for.
struct IdleGap {
  enum class Waits : std::uint8_t { data, channel, memory, nothing };  // as in DeviceTime; nothing: it had no more ops

  DeviceId device = 0;
  std::uint32_t slot = 0;
  Seconds start = 0, end = 0;
  Waits waits = Waits::data;
};
std::string_view to_string(IdleGap::Waits waits);  // "data", "channel", "memory", "done"
// All of them, where devices do not copy for themselves.
std::vector<IdleGap> idle_gaps(const Problem& problem, const Timeline& timeline);

// Accounts for a timeline, simulated or real, on devices of one slot. Of time that others had the core, the stamps do not
// say when it was: it is taken from `memory`, the gaps that nothing else explains, and then from `busy`. A gap belongs to the op that ends it, and what it
// waited for is its input that came last. What a real device folds in a gap is not counted as busy here.
std::vector<DeviceTime> account_time(const Problem& problem, const Timeline& timeline);

}  // namespace doppler
