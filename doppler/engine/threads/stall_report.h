#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "doppler/engine/threads/courier.h"
#include "doppler/engine/threads/worker.h"

namespace doppler {

// Who waits for what. Internal to doppler/engine.
// Nothing ended for too long; the threads may be running.
std::string describe_stall(const SharedRun& run, const std::deque<Worker>& workers);
// Everybody sleeps.
std::string describe_deadlock(const SharedRun& run, const std::deque<Worker>& workers,
                              const std::vector<std::unique_ptr<Courier>>& couriers);

}  // namespace doppler
