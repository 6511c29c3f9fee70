#pragma once

#include <span>
#include <vector>

#include "doppler/graph.h"

namespace doppler {

// Longest distances through the graph, for given times per op and per tensor. `top[v]` is the longest path
// that ends just before v starts; `bottom[v]` the longest that starts with v, its own time included (the
// upward rank of HEFT, the b-level of CRITICAL PATH). Tensor times count on every edge; pass an empty span to
// ignore them.
struct Levels {
  std::vector<Seconds> top, bottom;
  Seconds longest = 0;
};
Levels levels(const Graph& graph, std::span<const Seconds> op_time, std::span<const Seconds> tensor_time);

// Number of edges on the longest path from a source.
std::vector<std::uint32_t> depths(const Graph& graph);

}  // namespace doppler
