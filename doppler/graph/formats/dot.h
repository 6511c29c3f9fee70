#pragma once

#include <span>
#include <string>

#include "doppler/graph.h"

namespace doppler {

// For Graphviz: one box per op, one arrow per edge. With a device per op, boxes are coloured by it.
std::string graph_to_dot(const Graph& graph, std::span<const DeviceId> device_of_op = {});

}  // namespace doppler
