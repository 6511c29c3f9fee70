#pragma once

#include <optional>
#include <string>

#include "doppler/load.h"

namespace doppler {

PlacementFile read_placement(const std::string& path);  // throws InputError

// The placement of a file, for this problem. Throws InputError if it contradicts the machine or the graph, or was made
// for a graph of other ops or edges. A placement
// is only worth its makespan under the rules that it was made for: unless `quiet`, a note says so if these are others,
// and what we are `doing` with them.
Placement placement_for(const std::string& path, PlacementFile file, const LoadedProblem& loaded, bool quiet,
                        const char* doing);

// The same of a file that may also be a device map of another program (docs/maps.md).
Placement read_placement_for(const std::string& path, const LoadedProblem& loaded, bool quiet, const char* doing);

// The best placement that a training found for this very problem, if `directory` is that of one and it did.
std::optional<Placement> trained_placement(const std::string& directory, const LoadedProblem& loaded);

// The machine that a placement file was made for, if it names a preset; InputError that asks for --machine if not.
std::string machine_of(const std::string& path, const PlacementFile& file);

}  // namespace doppler
