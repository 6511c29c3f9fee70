#pragma once

#include "doppler/graph/formats/read_graph.h"

namespace doppler {

// A profiled network of "Efficient Algorithms for Device Placement of DNN Graph Operators" (NeurIPS 2020).
// The machine that the file was made for comes back as a warning.
LoadedGraph parse_dnn_partitioning(const std::string& where, std::string_view content);

}  // namespace doppler
