#pragma once

#include "doppler/place/search_record.h"

namespace doppler {

// Searches all assignments, device by device for one op after the other, and simulates each that is left at
// the end; for rules under which the schedule follows from the assignment. Arguments and result as
// search_schedules(). Internal to `exact`.
Seconds search_assignments(const Problem& problem, std::span<const Seconds> tail, SearchRecord& record);

}  // namespace doppler
