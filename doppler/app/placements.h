#pragma once

#include <string>

#include "doppler/problem.h"

namespace doppler {

PlacementFile read_placement(const std::string& path);  // throws InputError

// The placement of a file, for this problem. Throws InputError if it contradicts the machine or the graph. A placement
// is only worth its makespan under the rules that it was made for: unless `quiet`, a note says so if these are others,
// and what we are `doing` with them.
Placement placement_for(const std::string& path, PlacementFile file, const Problem& problem, bool quiet,
                        const char* doing);

// The machine that a placement file was made for, if it names a preset; InputError that asks for --machine if not.
std::string machine_of(const std::string& path, const PlacementFile& file);

}  // namespace doppler
