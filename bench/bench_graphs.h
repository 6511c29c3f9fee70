#pragma once

#include <string>
#include <vector>

#include "doppler/base/rng.h"
#include "doppler/graph.h"
#include "doppler/placement.h"

namespace doppler::bench {

struct BenchGraph {
  std::string name;
  Graph graph;
  DeviceId devices;
};

// The six published graphs where ../shared/data has them; otherwise generated ones of like size.
std::vector<BenchGraph> small_graphs();

// A layered graph of about two edges per op.
Graph layered_graph(OpId ops);

// Random placements to cycle through, so that the branch predictor cannot learn one by heart.
std::vector<Placement> random_placements(const Graph& graph, DeviceId devices, std::size_t count);

}  // namespace doppler::bench
