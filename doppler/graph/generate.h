#pragma once

#include <cstdint>

#include "doppler/graph.h"

namespace doppler {

// Graphs of any size for tests, benchmarks and studies. Every generator gives exactly the requested number of
// ops, ids in topological order, one tensor per op that all its successors read, and the same graph for the
// same options. The work is O(ops + edges). Throws InputError if an option is out of range.

// Ops carry flops and memory traffic and tensors carry bytes, so that any machine with rates can run the
// graph.
struct GeneratedCosts {
  double mean_flops = 1e9;
  // Standard deviation of log(flops) and of log(bytes), which are log-normal; 0: all equal.
  double spread = 0.5;
  // Time to move every edge's tensor over the time to compute every op, both at the reference rates below.
  // Met but for the rounding to whole bytes. Tensors are drawn independently of the flops of their producer.
  double communication_ratio = 1.0;
  double reference_flops_per_second = 1e13;  // about one P100 in f32
  double reference_bytes_per_second = 1e10;  // about one PCIe 3 x16 link
};

// Ops in layers; an op reads from the layer before its own.
struct LayeredOptions {
  OpId ops = 1000;
  OpId width = 16;    // mean ops per layer: uniform between 1 and 2·width-1
  double degree = 2;  // mean inputs per op after the first layer, at least 1; fewer where the layer before is narrower
  std::uint64_t seed = 0;
  GeneratedCosts costs;
};
Graph generate_layered(const LayeredOptions& options);

// Erdős–Rényi: every pair of ops i < j is an edge with the same probability. Ops without any edge are
// possible.
struct RandomOptions {
  OpId ops = 1000;
  double degree = 2;  // mean edges per op
  std::uint64_t seed = 0;
  GeneratedCosts costs;
};
Graph generate_random(const RandomOptions& options);

// Two-terminal series-parallel: from one edge, each step takes a random edge u -> v and either puts a new op
// on it (series) or a new op beside it, u -> x -> v (parallel).
struct SeriesParallelOptions {
  OpId ops = 1000;
  double parallel = 0.5;  // probability of a parallel step
  std::uint64_t seed = 0;
  GeneratedCosts costs;
};
Graph generate_series_parallel(const SeriesParallelOptions& options);

// Like a transformer: blocks one after the other, each a "norm" op, `width` branches of `depth` "matmul" ops,
// and an "add" op that joins the branches with the residual, the block's own norm. Ops left over after the
// last whole block form a chain of "add" ops at the end.
struct ChainOfBlocksOptions {
  OpId ops = 1000;
  OpId width = 4;
  OpId depth = 3;
  std::uint64_t seed = 0;
  GeneratedCosts costs;
};
Graph generate_chain_of_blocks(const ChainOfBlocksOptions& options);

}  // namespace doppler
