#pragma once

#include "doppler/graph/formats/read_graph.h"

namespace doppler {

// A graph as published with DOPPLER: per op a computation and a communication cost, both unit-less. Three
// published files have one damaged edge each; without `repair` they are read as they are, with a warning.
LoadedGraph parse_published_txt(const std::string& where, std::string_view content,
                                const ReadOptions& options);

}  // namespace doppler
