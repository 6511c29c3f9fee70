#pragma once

#include <string>

#include "doppler/problem.h"
#include "doppler/timeline.h"

namespace doppler {

// The timeline as Chrome trace events, for ui.perfetto.dev or chrome://tracing. A process per device; in it a
// thread per slot and per incoming link (more if transfers on it overlap); arrows from the producer to each
// transfer, and from the transfer to the ops that waited for it; a counter of the memory in use. Graphs without a unit: one unit is shown as
// one microsecond.
std::string timeline_to_trace(const Timeline& timeline, const Problem& problem);

}  // namespace doppler
