#pragma once

#include <string>
#include <vector>

#include "doppler/machine/machine.h"
#include "doppler/sim/timeline.h"

namespace doppler {

class Graph;

struct DeviceUse {
  std::size_t ops = 0;
  double utilisation = 0;  // busy time over slots × makespan
};
std::vector<DeviceUse> device_uses(const Timeline& timeline, const Machine& machine);

struct Traffic {
  std::size_t transfers = 0;
  Bytes bytes = 0;
};
Traffic traffic(const Timeline& timeline, const Graph& graph);

// "1.23 ms"; a graph without a unit: whole numbers in full, others with six digits.
std::string format_time(Seconds value, bool unitless);

// Per device: ops, utilisation, memory, and a strip that shows when it was busy: ' ' idle, '.' less than a
// third of the time, '-' less than two thirds, '=' more, '#' always.
std::string device_table(const Timeline& timeline, const Machine& machine);

}  // namespace doppler
