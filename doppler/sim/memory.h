#pragma once

#include "doppler/sim/problem.h"
#include "doppler/sim/timeline.h"

namespace doppler {

// Fills peak_memory, busy and overflow from the executions and transfers of a timeline, simulated or real.
//
// Parameters are resident all the time. A tensor lives on its producer's device from the producer's start
// until its last consumer there has ended and its last copy has left; on another device from the start of the
// transfer until its last consumer there has ended. A tensor that nobody reads is a result and stays. At one
// instant memory is released before it is taken.
void account_memory(const Problem& problem, Timeline& timeline);

}  // namespace doppler
