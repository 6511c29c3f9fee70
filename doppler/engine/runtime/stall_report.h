#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "doppler/engine/runtime/courier.h"
#include "doppler/engine/runtime/worker.h"

namespace doppler {

// Who waits for what, in words. Internal to doppler/engine.

// Describes a run in which nothing has ended for too long; the threads may be running.
std::string describe_stall(const SharedRun& run, const std::deque<Worker>& workers);
// Describes a run in which everybody sleeps and work is left.
std::string describe_deadlock(const SharedRun& run, const std::deque<Worker>& workers,
                              const std::vector<std::unique_ptr<Courier>>& couriers);

}  // namespace doppler
