#pragma once

#include "doppler/bounds/destructive_bound.h"
#include "doppler/place/exact/search_record.h"

namespace doppler {

// Searches all schedules that the discipline can produce, op by op in order of start times, and improves the
// record. `known` holds for every schedule better than the record at the start. Returns a proven lower bound:
// the record's makespan if the search ended by itself. For free links any of fifo, priority and ordered; for
// channels priority and ordered. Internal to `exact`.
Seconds search_schedules(const Problem& problem, const Consequences& known, SearchRecord& record);

}  // namespace doppler
