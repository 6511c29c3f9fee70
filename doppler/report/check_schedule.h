#pragma once

#include <string>

#include "doppler/results.h"

namespace doppler {

// Throws InputError naming `where` if a schedule of a result that was read cannot be drawn: columns of different lengths,
// numbers that stand for nothing. Internal to doppler/report.
void check_schedules(const std::string& where, const AnyResult& result);

}  // namespace doppler
