#pragma once

#include <string>

#include "doppler/report/results.h"

namespace doppler {

// What a verb prints for people.
std::string to_text(const AnyResult& result);

// "1.23 ms"; a graph without a unit: whole numbers in full, others with six digits.
std::string format_time(Seconds value, bool unitless);

// Per device: ops, utilisation, memory, and a strip that shows when it was busy: ' ' idle, '.' less than a
// third of the time, '-' less than two thirds, '=' more, '#' always.
std::string device_table(const std::vector<DeviceUse>& devices);

}  // namespace doppler
