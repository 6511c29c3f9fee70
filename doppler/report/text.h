#pragma once

#include <string>

#include "doppler/results.h"

namespace doppler {

// "1.23 ms"; a graph without a unit: whole numbers in full, others with six digits.
std::string format_time(Seconds value, bool unitless);

// Per device: ops, utilisation, memory, and a strip that shows when it was busy: ' ' idle, '.' less than a
// third of the time, '-' less than two thirds, '=' more, '#' always.
std::string device_table(const std::vector<DeviceUse>& devices);

}  // namespace doppler
