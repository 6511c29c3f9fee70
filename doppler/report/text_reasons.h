#pragma once

#include <string>

#include "doppler/results.h"

namespace doppler {

// What `why`, `diff` and `machines` print. Names are clean already.
std::string text_of(const WhyResult& why);
std::string text_of(const DiffResult& diff);
std::string text_of(const MachineList& list);
std::string text_of(const SplitResult& split);

}  // namespace doppler
