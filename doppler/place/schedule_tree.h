#pragma once

#include "doppler/place/search_record.h"

namespace doppler {

// Searches all schedules that the discipline can produce, op by op in order of start times; improves the
// record. `head` and `tail` are valid lower bounds on the time before and after each op. Returns a proven
// lower bound: the record's makespan if the search ended by itself. For free links any of fifo, priority and
// ordered; for channels priority and ordered. Internal to `exact`.
Seconds search_schedules(const Problem& problem, std::span<const Seconds> head, std::span<const Seconds> tail,
                         SearchRecord& record);

}  // namespace doppler
