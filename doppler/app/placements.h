#pragma once

#include <string>

#include "doppler/sim/problem.h"

namespace doppler {

// A placement file for this problem. Throws InputError also if the placement contradicts the machine or the graph.
Placement read_placement(const std::string& path, const Problem& problem);
// A placement is only worth its makespan under the rules that it was made for: says so if these are others.
void note_other_rules(const std::string& path, const Rules& rules, const char* doing);

}  // namespace doppler
