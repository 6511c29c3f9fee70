#pragma once

#include "doppler/bounds/destructive_bound.h"
#include "doppler/place/exact/search_record.h"

namespace doppler {

// Searches all assignments, device by device for one op after the other, and simulates each that is left at
// the end; for rules under which the schedule follows from the assignment. Arguments and result as
// search_schedules(). Internal to `exact`.
Seconds search_assignments(const Problem& problem, const Consequences& known, SearchRecord& record);

}  // namespace doppler
