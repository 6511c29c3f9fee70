#include "doppler/graph/generate.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"

namespace doppler {
namespace {

struct GeneratedEdge {
  OpId src, dst;
};

// What a generator decides; costs are added afterwards, the same way for all.
struct Structure {
  OpId ops = 0;
  std::vector<GeneratedEdge> edges;
  std::vector<std::string_view> kinds;  // per op; empty: the default kind
};

// Streams of one seed, so that costs do not change when a structure draws more numbers.
enum Stream : std::uint64_t { kStructure, kFlops, kBytes };

void require(bool met, std::string_view option, double found, std::string_view required) {
  if (!met) throw InputError(fmt::format("generate: {} {}; required {}", option, found, required));
}

void check_costs(const GeneratedCosts& costs) {
  const auto positive = [](double x) { return x > 0 && x <= kLargestCost; };
  require(positive(costs.mean_flops), "mean flops", costs.mean_flops, "a positive number");
  require(costs.spread >= 0 && costs.spread <= 4, "spread", costs.spread, "between 0 and 4");
  require(costs.communication_ratio >= 0 && costs.communication_ratio <= 1e6, "communication ratio",
          costs.communication_ratio, "between 0 and 1e6");
  require(positive(costs.reference_flops_per_second), "reference flops per second", costs.reference_flops_per_second,
          "a positive number");
  require(positive(costs.reference_bytes_per_second), "reference bytes per second", costs.reference_bytes_per_second,
          "a positive number");
}

void check_ops(OpId ops) { require(ops >= 1, "ops", ops, "at least 1"); }

// Log-normal numbers with mean 1: exp(N(-s²/2, s)).
std::vector<double> draw_sizes(std::size_t count, double spread, Rng rng) {
  std::vector<double> sizes(count);
  for (double& size : sizes) size = std::exp(spread * rng.normal() - spread * spread / 2);
  return sizes;
}

// Bytes of every op's output such that moving each edge once takes `communication_ratio` times the
// computation.
std::vector<Bytes> scale_to_ratio(const std::vector<double>& sizes, const std::vector<GeneratedEdge>& edges,
                                  double total_flops, const GeneratedCosts& costs) {
  double moved = 0;
  for (const GeneratedEdge& edge : edges) moved += sizes[edge.src];
  const double target =
      costs.communication_ratio * total_flops / costs.reference_flops_per_second * costs.reference_bytes_per_second;
  const double scale = moved > 0 ? target / moved : 0;
  std::vector<Bytes> bytes(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i)
    bytes[i] = static_cast<Bytes>(std::llround(std::min(scale * sizes[i], kLargestCost)));
  return bytes;
}

Graph add_costs(std::string title, const Structure& structure, std::uint64_t seed, const GeneratedCosts& costs) {
  const Rng rng(seed);
  std::vector<double> flops = draw_sizes(structure.ops, costs.spread, rng.split(kFlops));
  double total_flops = 0;
  for (double& value : flops) {
    value = std::min(std::max(1.0, std::round(value * costs.mean_flops)), kLargestCost);
    total_flops += value;
  }
  const std::vector<double> sizes = draw_sizes(structure.ops, costs.spread, rng.split(kBytes));
  const std::vector<Bytes> bytes = scale_to_ratio(sizes, structure.edges, total_flops, costs);
  std::vector<Bytes> bytes_read(structure.ops, 0);
  for (const GeneratedEdge& edge : structure.edges) bytes_read[edge.dst] += bytes[edge.src];

  GraphBuilder builder(title);
  for (OpId op = 0; op < structure.ops; ++op) {
    OpSpec spec;
    if (!structure.kinds.empty()) spec.kind = structure.kinds[op];
    spec.flops = flops[op];
    spec.bytes_read = bytes_read[op];
    spec.bytes_written = bytes[op];
    builder.add_op(std::move(spec));
    builder.add_tensor(op, bytes[op]);  // tensor id = op id
  }
  for (const GeneratedEdge& edge : structure.edges) builder.add_consumer(edge.src, edge.dst);
  return std::move(builder).build();
}

// Renumbers ops so that every edge goes from a smaller to a larger id (Kahn's algorithm, first in first out).
void number_topologically(Structure& structure) {
  std::vector<std::uint32_t> pending(structure.ops, 0), begin(structure.ops + std::size_t{1}, 0);
  for (const GeneratedEdge& edge : structure.edges) ++pending[edge.dst], ++begin[edge.src + 1];
  for (OpId op = 0; op < structure.ops; ++op) begin[op + 1] += begin[op];
  std::vector<OpId> successors(structure.edges.size());
  std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
  for (const GeneratedEdge& edge : structure.edges) successors[next[edge.src]++] = edge.dst;
  std::vector<OpId> order, new_id(structure.ops);
  order.reserve(structure.ops);
  for (OpId op = 0; op < structure.ops; ++op)
    if (pending[op] == 0) order.push_back(op);
  for (std::size_t i = 0; i < order.size(); ++i) {
    new_id[order[i]] = static_cast<OpId>(i);
    for (std::uint32_t e = begin[order[i]]; e < begin[order[i] + 1]; ++e)
      if (--pending[successors[e]] == 0) order.push_back(successors[e]);
  }
  for (GeneratedEdge& edge : structure.edges) edge = {new_id[edge.src], new_id[edge.dst]};
}

// Adds `count` different ops of [first, last) as inputs of `op` (Floyd's sampling; counts are small).
void add_distinct_inputs(OpId op, OpId first, OpId last, OpId count, Rng& rng, std::vector<GeneratedEdge>& edges) {
  const std::size_t start = edges.size();
  for (OpId top = last - count; top < last; ++top) {
    const OpId candidate = first + rng.below(top - first + 1);
    const bool taken = std::any_of(edges.begin() + static_cast<std::ptrdiff_t>(start), edges.end(),
                                   [&](const GeneratedEdge& edge) { return edge.src == candidate; });
    edges.push_back({taken ? top : candidate, op});
  }
}

}  // namespace

Graph generate_layered(const LayeredOptions& options) {
  // Sampling distinct inputs compares each with the others; the limit keeps that a constant.
  constexpr double kLargestDegree = 64;
  check_ops(options.ops);
  check_costs(options.costs);
  require(options.width >= 1 && options.width <= (1u << 30), "width", options.width, "between 1 and 2^30");
  require(options.degree >= 1 && options.degree <= kLargestDegree, "degree", options.degree, "between 1 and 64");
  Rng rng = Rng(options.seed).split(kStructure);
  Structure structure{options.ops, {}, {}};
  OpId previous = 0, first = 0;  // the layer before is [previous, first)
  while (first < options.ops) {
    const OpId last = first + std::min(options.ops - first, 1 + rng.below(2 * options.width - 1));
    for (OpId op = first; op < last && first > 0; ++op) {
      // 1 + uniform on [0, 2(d-1)], rounded up or down at random, has mean d.
      const double extra = 2 * (options.degree - 1) * rng.uniform();
      const OpId wanted = 1 + static_cast<OpId>(extra + rng.uniform());
      add_distinct_inputs(op, previous, first, std::min(wanted, first - previous), rng, structure.edges);
    }
    previous = first;
    first = last;
  }
  const std::string title = fmt::format("layered {} ops, width {}, degree {}, seed {}", options.ops, options.width,
                                        options.degree, options.seed);
  return add_costs(title, structure, options.seed, options.costs);
}

Graph generate_random(const RandomOptions& options) {
  check_ops(options.ops);
  check_costs(options.costs);
  const double most = (options.ops - 1) / 2.0;  // of a complete graph
  require(options.degree >= 0 && (options.degree <= most || options.ops == 1), "degree", options.degree,
          fmt::format("between 0 and {}, the degree of the complete graph", most));
  Rng rng = Rng(options.seed).split(kStructure);
  Structure structure{options.ops, {}, {}};
  // Walks over the pairs (i < j), j by j, in steps whose lengths are geometric: O(edges) instead of O(ops²).
  const double probability = options.ops > 1 ? options.degree / most : 0;
  const double log_miss = std::log1p(-probability);  // -infinity for the complete graph: every step is 1
  if (probability > 0) {
    std::uint64_t dst = 1;
    double src = -1;
    while (dst < options.ops) {
      src += 1 + std::floor(std::log1p(-rng.uniform()) / log_miss);
      while (dst < options.ops && src >= static_cast<double>(dst)) src -= static_cast<double>(dst++);
      if (dst < options.ops) structure.edges.push_back({static_cast<OpId>(src), static_cast<OpId>(dst)});
    }
  }
  const std::string title = fmt::format("random {} ops, degree {}, seed {}", options.ops, options.degree, options.seed);
  return add_costs(title, structure, options.seed, options.costs);
}

Graph generate_series_parallel(const SeriesParallelOptions& options) {
  check_ops(options.ops);
  check_costs(options.costs);
  require(options.parallel >= 0 && options.parallel <= 1, "parallel", options.parallel, "between 0 and 1");
  Rng rng = Rng(options.seed).split(kStructure);
  Structure structure{options.ops, {}, {}};
  std::vector<GeneratedEdge>& edges = structure.edges;
  if (options.ops > 1) edges.push_back({0, 1});
  for (OpId op = 2; op < options.ops; ++op) {
    const std::size_t chosen = rng.below(static_cast<std::uint32_t>(edges.size()));
    const auto [src, dst] = edges[chosen];
    if (rng.uniform() < options.parallel)
      edges.push_back({src, op});
    else
      edges[chosen] = {src, op};
    edges.push_back({op, dst});
  }
  number_topologically(structure);
  const std::string title =
      fmt::format("series-parallel {} ops, parallel {}, seed {}", options.ops, options.parallel, options.seed);
  return add_costs(title, structure, options.seed, options.costs);
}

Graph generate_chain_of_blocks(const ChainOfBlocksOptions& options) {
  check_ops(options.ops);
  check_costs(options.costs);
  require(options.width >= 1, "width", options.width, "at least 1");
  require(options.depth >= 1, "depth", options.depth, "at least 1");
  const std::uint64_t block = std::uint64_t{options.width} * options.depth + 2;
  Structure structure{options.ops, {}, {}};
  structure.kinds.assign(options.ops, "add");
  OpId first = 0;
  for (; options.ops - first >= block; first += static_cast<OpId>(block)) {
    if (first > 0) structure.edges.push_back({first - 1, first});
    structure.kinds[first] = "norm";
    const OpId join = first + static_cast<OpId>(block) - 1;
    structure.edges.push_back({first, join});  // the residual
    for (OpId branch = 0; branch < options.width; ++branch) {
      const OpId head = first + 1 + branch * options.depth;
      for (OpId op = head; op < head + options.depth; ++op) {
        structure.edges.push_back({op == head ? first : op - 1, op});
        structure.kinds[op] = "matmul";
      }
      structure.edges.push_back({head + options.depth - 1, join});
    }
  }
  for (OpId op = std::max<OpId>(first, 1); op < options.ops; ++op) structure.edges.push_back({op - 1, op});
  const std::string title = fmt::format("chain-of-blocks {} ops, width {}, depth {}, seed {}", options.ops,
                                        options.width, options.depth, options.seed);
  return add_costs(title, structure, options.seed, options.costs);
}

}  // namespace doppler
