#pragma once

#include <span>
#include <vector>

#include "doppler/ids.h"
#include "doppler/units.h"

namespace doppler {

// Work that has to be done inside a window, by ops that share a device with the rest of their cluster.
struct WindowedWork {
  Seconds from, to, work;
  std::uint32_t cluster;
};
// False if the work cannot be done even if it may be interrupted and moved between devices at will, as long
// as at no time more than `device_slots` slots serve one cluster, one serves an op, and `total_slots` serve
// all. Decided by a maximum flow from work through time intervals (Horn 1974, with one more layer for
// clusters). At most `interval_limit` intervals: windows of small work are widened to their borders, which
// only makes it easier.
bool fits_in_windows(std::span<const WindowedWork> items, double device_slots, double total_slots,
                     std::size_t interval_limit);

}  // namespace doppler
