#include "doppler/place/partition/metis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <new>
#include <numeric>

#include <metis.h>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/bounds/relaxation.h"
#include "doppler/place/list/simple_placements.h"
#include "doppler/place/partition/assignment.h"
#include "doppler/place/search/incumbent.h"

namespace doppler {
namespace {

// METIS adds weights up in 32-bit integers, edges in both directions: totals below 2^30 leave it room.
constexpr double kLargestTotal = 1 << 29;
constexpr std::array kImbalances = {1.01, 1.05, 1.1, 1.2, 1.4};
constexpr double kLooseMemory = 10;  // Clusters need not fit anywhere.
constexpr std::uint64_t kTrials = 10 * kImbalances.size();
// METIS cannot be interrupted, and divides as many vertices in a tenth of a second. More are merged before it sees
// them.
constexpr idx_t kMostVertices = 60'000;
constexpr std::uint64_t kStepsPerVertex = 64;  // of a Watch, while METIS has them

// The undirected graph that METIS sees. A vertex is a colocation unit; all units that may run on one device
// only form one vertex, since METIS has no fixed vertices.
struct Contraction {
  std::vector<idx_t> vertex_of_op;
  std::vector<idx_t> begin, neighbour, edge_weight;  // compressed rows
  std::vector<idx_t> vertex_weight;                  // work, and bytes if memory is limited, interleaved
  idx_t vertices = 0;
  idx_t constraints = 1;
};

idx_t scaled(double value, double total) {
  return static_cast<idx_t>(std::lround(total > 0 ? value / total * kLargestTotal : 0));
}

void number_vertices(const Problem& problem, Contraction& result) {
  result.vertex_of_op.resize(problem.op_count());
  std::vector<idx_t> vertex_of_device(problem.device_count(), -1);
  for_each_unit(problem, [&](OpId op) {
    const auto devices = problem.devices(op);
    idx_t vertex = result.vertices;
    if (devices.size() == 1 && problem.device_count() > 1) {
      if (vertex_of_device[devices.front()] < 0) vertex_of_device[devices.front()] = result.vertices++;
      vertex = vertex_of_device[devices.front()];
    } else {
      ++result.vertices;
    }
    for (const OpId member : problem.unit(op)) result.vertex_of_op[member] = vertex;
  });
}

// A vertex above the average part fills a part by itself, however heavy it is; with its real weight METIS
// would leave the parts beside it empty.
void cap_at_average(std::vector<double>& weight, std::size_t parts) {
  for (std::size_t round = 0; round < parts; ++round) {
    const double average = std::accumulate(weight.begin(), weight.end(), 0.0) / static_cast<double>(parts);
    if (std::none_of(weight.begin(), weight.end(), [&](double value) { return value > average; })) return;
    for (double& value : weight) value = std::min(value, average);
  }
}

void weigh_vertices(const Problem& problem, Contraction& result) {
  const Graph& graph = problem.graph();
  result.constraints = problem.memory_limited() ? 2 : 1;
  const auto vertices = static_cast<std::size_t>(result.vertices),
             stride = static_cast<std::size_t>(result.constraints);
  std::vector<double> work(vertices, 0.0), bytes(vertices, 0.0);
  for (OpId op = 0; op < problem.op_count(); ++op) {
    const auto vertex = static_cast<std::size_t>(result.vertex_of_op[op]);
    work[vertex] += problem.costs().mean_time(op);
    bytes[vertex] += static_cast<double>(graph.parameter_bytes(op));
    for (const TensorId tensor : graph.outputs(op)) bytes[vertex] += static_cast<double>(graph.bytes(tensor));
  }
  result.vertex_weight.resize(vertices * stride);
  for (std::size_t constraint = 0; constraint < stride; ++constraint) {
    std::vector<double>& weight = constraint == 0 ? work : bytes;
    cap_at_average(weight, problem.device_count());
    double total = std::accumulate(weight.begin(), weight.end(), 0.0);
    if (total == 0) {  // nothing to balance: balance the number of vertices
      std::fill(weight.begin(), weight.end(), 1.0);
      total = static_cast<double>(vertices);
    }
    for (std::size_t v = 0; v < vertices; ++v) result.vertex_weight[v * stride + constraint] = scaled(weight[v], total);
  }
}

// An edge weighs the mean time of all tensors between its ends, each counted once.
void connect_vertices(const Problem& problem, Contraction& result) {
  const Graph& graph = problem.graph();
  struct Edge {
    idx_t from, to;
    double weight;
  };
  std::vector<Edge> edges;
  std::vector<TensorId> last_tensor(static_cast<std::size_t>(result.vertices), graph.tensor_count());
  double total = 0;
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor) {
    const idx_t from = result.vertex_of_op[graph.producer(tensor)];
    const double weight = problem.costs().mean_transfer(tensor);
    for (const OpId consumer : graph.consumers(tensor)) {
      const idx_t to = result.vertex_of_op[consumer];
      TensorId& seen = last_tensor[static_cast<std::size_t>(to)];
      if (to == from || seen == tensor) continue;
      seen = tensor;
      edges.push_back({from, to, weight});
      edges.push_back({to, from, weight});
      total += weight;
    }
  }
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Edge& a, const Edge& b) { return std::tie(a.from, a.to) < std::tie(b.from, b.to); });
  result.begin.assign(static_cast<std::size_t>(result.vertices) + 1, 0);
  for (std::size_t i = 0; i < edges.size();) {
    const Edge& first = edges[i];
    double weight = 0;
    for (; i < edges.size() && edges[i].from == first.from && edges[i].to == first.to; ++i) weight += edges[i].weight;
    result.neighbour.push_back(first.to);
    result.edge_weight.push_back(std::max<idx_t>(1, scaled(weight, total)));  // METIS requires positive weights
    ++result.begin[static_cast<std::size_t>(first.from) + 1];
  }
  std::partial_sum(result.begin.begin(), result.begin.end(), result.begin.begin());
}

// A coarse vertex for each vertex: neighbours by a heavy edge go together, one pair after the other, as METIS does it
// (Karypis and Kumar 1998). What finds no neighbour alone goes with the next such vertex, so that half of them remain
// whatever the graph.
std::vector<idx_t> match_by_heavy_edges(const Contraction& graph, idx_t& coarse_vertices) {
  std::vector<idx_t> coarse(static_cast<std::size_t>(graph.vertices), -1);
  coarse_vertices = 0;
  idx_t alone = -1;  // a vertex that waits for company
  for (std::size_t v = 0; v < coarse.size(); ++v) {
    if (coarse[v] >= 0) continue;
    idx_t mate = -1, heaviest = 0;
    for (auto e = static_cast<std::size_t>(graph.begin[v]); e < static_cast<std::size_t>(graph.begin[v + 1]); ++e) {
      if (coarse[static_cast<std::size_t>(graph.neighbour[e])] >= 0 || graph.edge_weight[e] <= heaviest) continue;
      mate = graph.neighbour[e];
      heaviest = graph.edge_weight[e];
    }
    if (mate >= 0) {
      coarse[v] = coarse[static_cast<std::size_t>(mate)] = coarse_vertices++;
    } else if (alone >= 0) {
      coarse[v] = alone;
      alone = -1;
    } else {
      coarse[v] = alone = coarse_vertices++;
    }
  }
  return coarse;
}

Contraction merge(const Contraction& graph, const std::vector<idx_t>& coarse, idx_t coarse_vertices) {
  Contraction result;
  result.vertices = coarse_vertices;
  result.constraints = graph.constraints;
  for (const idx_t vertex : graph.vertex_of_op) result.vertex_of_op.push_back(coarse[static_cast<std::size_t>(vertex)]);
  const auto stride = static_cast<std::size_t>(graph.constraints), count = static_cast<std::size_t>(coarse_vertices);
  result.vertex_weight.assign(count * stride, 0);
  std::vector<std::vector<std::size_t>> members(count);
  for (std::size_t v = 0; v < coarse.size(); ++v) {
    members[static_cast<std::size_t>(coarse[v])].push_back(v);
    for (std::size_t c = 0; c < stride; ++c)
      result.vertex_weight[static_cast<std::size_t>(coarse[v]) * stride + c] += graph.vertex_weight[v * stride + c];
  }
  result.begin.push_back(0);
  std::vector<std::size_t> edge_to(count, 0);  // plus one: where the edge to a coarse vertex is
  for (std::size_t from = 0; from < count; ++from) {
    const std::size_t first = result.neighbour.size();
    for (const std::size_t v : members[from]) {
      for (auto e = static_cast<std::size_t>(graph.begin[v]); e < static_cast<std::size_t>(graph.begin[v + 1]); ++e) {
        const auto to = static_cast<std::size_t>(coarse[static_cast<std::size_t>(graph.neighbour[e])]);
        if (to == from) continue;
        if (edge_to[to] <= first) {
          result.neighbour.push_back(static_cast<idx_t>(to));
          result.edge_weight.push_back(0);
          edge_to[to] = result.neighbour.size();
        }
        result.edge_weight[edge_to[to] - 1] += graph.edge_weight[e];
      }
    }
    result.begin.push_back(static_cast<idx_t>(result.neighbour.size()));
  }
  return result;
}

// METIS cannot be interrupted, so it is given no more than it does in a moment.
void coarsen(Contraction& graph, Watch& watch) {
  while (graph.vertices > kMostVertices) {
    watch.step(static_cast<std::uint64_t>(graph.vertices));
    idx_t coarse_vertices = 0;
    const std::vector<idx_t> coarse = match_by_heavy_edges(graph, coarse_vertices);
    graph = merge(graph, coarse, coarse_vertices);
  }
}

Contraction contract(const Problem& problem, Watch& watch) {
  Contraction result;
  watch.step(problem.op_count());
  number_vertices(problem, result);
  weigh_vertices(problem, result);
  watch.step(problem.op_count());
  connect_vertices(problem, result);
  coarsen(result, watch);
  return result;
}

// What each part should get: of the work as much as its device is fast, of the bytes as much as it has
// memory.
struct Targets {
  std::vector<real_t> share;  // (device, constraint)
  double memory_slack = 1;    // capacity / bytes
};

// Speed relative to the mean, over the ops that the device can run, times slots.
double capacity_for_work(const Problem& problem, DeviceId device) {
  double mean = 0, here = 0;
  for (OpId op = 0; op < problem.op_count(); ++op) {
    if (!problem.allows(op, device)) continue;
    mean += problem.costs().mean_time(op);
    here += problem.costs().op_time(op, device);
  }
  return (here > 0 ? mean / here : 1) * problem.machine().device(device).slots;
}

Targets targets(const Problem& problem, idx_t constraints) {
  double bytes = 0;
  for (OpId op = 0; op < problem.op_count(); ++op) {
    bytes += static_cast<double>(problem.graph().parameter_bytes(op));
    for (const TensorId tensor : problem.graph().outputs(op))
      bytes += static_cast<double>(problem.graph().bytes(tensor));
  }
  const std::vector<std::uint32_t> kind = interchangeable_devices(problem);
  std::vector<double> work_of_kind;
  for (DeviceId device = 0; device < problem.device_count(); ++device)
    if (kind[device] == work_of_kind.size()) work_of_kind.push_back(capacity_for_work(problem, device));
  const auto stride = static_cast<std::size_t>(constraints);
  Targets result;
  result.share.resize(problem.device_count() * stride);
  for (std::size_t constraint = 0; constraint < stride; ++constraint) {
    std::vector<double> capacity;
    for (DeviceId device = 0; device < problem.device_count(); ++device)
      capacity.push_back(constraint == 0 ? work_of_kind[kind[device]]
                                         : std::min(bytes + 1, static_cast<double>(memory_capacity(problem, device))));
    const double total = std::accumulate(capacity.begin(), capacity.end(), 0.0);
    for (DeviceId device = 0; device < problem.device_count(); ++device)
      result.share[device * stride + constraint] = static_cast<real_t>(capacity[device] / total);
    if (constraint == 1) result.memory_slack = total / (bytes + 1);
  }
  return result;
}

// Some of the vertices, to be divided among some of the parts.
struct Block {
  std::vector<idx_t> vertices;
  DeviceId first, count;
};

// The graph among the vertices of a block.
Contraction subgraph(const Contraction& graph, const Block& block, std::vector<idx_t>& scratch) {
  Contraction result;
  result.constraints = graph.constraints;
  const auto stride = static_cast<std::size_t>(graph.constraints);
  for (const idx_t vertex : block.vertices) scratch[static_cast<std::size_t>(vertex)] = result.vertices++;
  result.begin.push_back(0);
  for (const idx_t vertex : block.vertices) {
    const auto v = static_cast<std::size_t>(vertex);
    for (auto e = static_cast<std::size_t>(graph.begin[v]); e < static_cast<std::size_t>(graph.begin[v + 1]); ++e) {
      const idx_t neighbour = scratch[static_cast<std::size_t>(graph.neighbour[e])];
      if (neighbour < 0) continue;
      result.neighbour.push_back(neighbour);
      result.edge_weight.push_back(graph.edge_weight[e]);
    }
    result.begin.push_back(static_cast<idx_t>(result.neighbour.size()));
    for (std::size_t c = 0; c < stride; ++c) result.vertex_weight.push_back(graph.vertex_weight[v * stride + c]);
  }
  for (const idx_t vertex : block.vertices) scratch[static_cast<std::size_t>(vertex)] = -1;
  return result;
}

// The shares of the lower and the upper half of the block's parts, per constraint.
std::vector<real_t> shares_of_halves(const Targets& target, const Block& block, std::size_t constraints) {
  std::vector<real_t> share(2 * constraints, 0);
  for (std::size_t c = 0; c < constraints; ++c) {
    for (DeviceId part = block.first; part < block.first + block.count; ++part)
      share[(part < block.first + block.count / 2 ? 0 : constraints) + c] += target.share[part * constraints + c];
    const real_t total = share[c] + share[constraints + c];
    share[c] /= total;
    share[constraints + c] = 1 - share[c];
  }
  return share;
}

// 0 or 1 for each vertex of a block.
std::vector<idx_t> bisect(Contraction graph, std::vector<real_t> share, std::array<real_t, 2> imbalance,
                          std::uint64_t seed) {
  std::array<idx_t, METIS_NOPTIONS> options;
  METIS_SetDefaultOptions(options.data());
  options[METIS_OPTION_SEED] = static_cast<idx_t>(seed >> 33);
  std::vector<idx_t> side(static_cast<std::size_t>(graph.vertices), 0);
  idx_t parts = 2, cut = 0;
  // METIS draws from rand(), which belongs to the whole process and is seeded at each call: a call repeats
  // itself if no other thread draws meanwhile, and the lock keeps our own apart. While it runs, SIGTERM and SIGABRT are
  // METIS's: it jumps out of itself when one comes. A program that wants SIGTERM for itself blocks it in all threads
  // and waits for it in one, as the command does (app/console.cpp).
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const int status = METIS_PartGraphRecursive(
      &graph.vertices, &graph.constraints, graph.begin.data(), graph.neighbour.data(), graph.vertex_weight.data(),
      nullptr, graph.edge_weight.data(), &parts, share.data(), imbalance.data(), options.data(), &cut, side.data());
  if (status == METIS_ERROR_MEMORY) throw std::bad_alloc();
  DOPPLER_CHECK(status == METIS_OK, "METIS returned {}", status);
  return side;
}

// Part of each vertex, by bisection of bisections. METIS would do that itself (METIS_PartGraphRecursive,
// which its manual recommends for few parts), but prints to standard output when a half has fewer vertices
// than parts.
std::vector<idx_t> partition(const Contraction& graph, const Targets& target, DeviceId parts, double imbalance,
                             std::uint64_t seed, Watch& watch) {
  std::vector<idx_t> part(static_cast<std::size_t>(graph.vertices)), scratch(part.size(), -1);
  std::iota(part.begin(), part.end(), 0);
  const double depth = std::max(1.0, std::ceil(std::log2(parts)));
  const std::array allowed = {static_cast<real_t>(std::pow(imbalance, 1 / depth)),
                              static_cast<real_t>(std::pow(std::clamp(target.memory_slack, 1.01, 10.0), 1 / depth))};
  std::vector<Block> blocks = {{part, 0, parts}};
  while (!blocks.empty()) {
    const Block block = std::move(blocks.back());
    blocks.pop_back();
    if (block.count == 1 || block.vertices.size() <= block.count) {  // METIS needs more vertices than parts
      for (std::size_t i = 0; i < block.vertices.size(); ++i)
        part[static_cast<std::size_t>(block.vertices[i])] = static_cast<idx_t>(block.first + i % block.count);
      continue;
    }
    watch.step(kStepsPerVertex * block.vertices.size());
    const auto side = bisect(subgraph(graph, block, scratch),
                             shares_of_halves(target, block, static_cast<std::size_t>(graph.constraints)), allowed,
                             mix(seed, block.first * parts + block.count));
    const DeviceId half = block.count / 2;
    std::array<Block, 2> halves = {Block{{}, block.first, half}, Block{{}, block.first + half, block.count - half}};
    for (std::size_t i = 0; i < side.size(); ++i)
      halves[static_cast<std::size_t>(side[i])].vertices.push_back(block.vertices[i]);
    for (Block& next : halves)
      if (!next.vertices.empty()) blocks.push_back(std::move(next));
  }
  return part;
}

// Parts to devices, at the least total time; what a device is not allowed to run counts as much as everything
// else.
std::vector<std::uint32_t> match_parts(const Problem& problem, const std::vector<idx_t>& part_of_op, Watch& watch) {
  const DeviceId devices = problem.device_count();
  const auto& mean = problem.costs().mean_times();
  const double forbidden = 1 + std::accumulate(mean.begin(), mean.end(), 0.0);
  std::vector<double> cost(std::size_t{devices} * devices, 0.0);
  for (OpId op = 0; op < problem.op_count(); ++op) {
    watch.step(devices);
    for (DeviceId device = 0; device < devices; ++device)
      cost[static_cast<std::size_t>(part_of_op[op]) * devices + device] +=
          problem.allows(op, device) ? problem.costs().op_time(op, device) : forbidden;
  }
  return least_cost_assignment(cost, devices, devices, watch);
}

Placement place_parts(const Problem& problem, const Contraction& graph, const std::vector<idx_t>& part_of_vertex,
                      Watch& watch) {
  std::vector<idx_t> part_of_op;
  for (const idx_t vertex : graph.vertex_of_op) part_of_op.push_back(part_of_vertex[static_cast<std::size_t>(vertex)]);
  const auto device_of_part = match_parts(problem, part_of_op, watch);
  Placement placement = empty_placement(problem);
  StaticMemory memory(problem);
  for_each_unit(problem, [&](OpId op) {
    DeviceId device = device_of_part[static_cast<std::size_t>(part_of_op[op])];
    Cause cause = Cause::partition;
    if (!problem.allows(op, device) || !memory.fits(op, device)) {
      if (problem.allows(op, device)) cause = Cause::memory;
      const auto devices = problem.devices(op);
      device = *std::min_element(devices.begin(), devices.end(), [&](DeviceId a, DeviceId b) {
        return std::pair(memory.excess(op, a), problem.costs().op_time(op, a)) <
               std::pair(memory.excess(op, b), problem.costs().op_time(op, b));
      });
    }
    memory.add(op, device);
    assign_unit(problem, placement, op, device, cause);
  });
  return placement;
}

}  // namespace

std::vector<std::uint32_t> metis_clusters(const Problem& problem, std::span<const std::uint32_t> group_of_op,
                                          std::uint32_t groups, std::uint32_t clusters, std::uint64_t seed,
                                          Watch watch) {
  Contraction graph;
  graph.vertices = static_cast<idx_t>(groups);
  graph.vertex_of_op.assign(group_of_op.begin(), group_of_op.end());
  weigh_vertices(problem, graph);
  connect_vertices(problem, graph);
  coarsen(graph, watch);
  const Targets equal{.share = std::vector<real_t>(static_cast<std::size_t>(graph.constraints) * clusters,
                                                   1.0F / static_cast<real_t>(clusters)),
                      .memory_slack = kLooseMemory};
  const std::vector<idx_t> part = partition(graph, equal, clusters, kImbalances.back(), seed, watch);
  std::vector<std::uint32_t> cluster_of_group(groups, 0);
  for (OpId op = 0; op < problem.op_count(); ++op)
    cluster_of_group[group_of_op[op]] =
        static_cast<std::uint32_t>(part[static_cast<std::size_t>(graph.vertex_of_op[op])]);
  return cluster_of_group;
}

Proposal metis(const Problem& problem, Objective& objective, const MethodOptions& options) {
  Watch watch(options.budget);
  const Contraction graph = contract(problem, watch);
  const Targets target = targets(problem, graph.constraints);
  Incumbent best("metis", objective, options);
  for (std::uint64_t trial = 0; trial < kTrials && !best.exhausted(); ++trial) {
    const double imbalance = kImbalances[trial % kImbalances.size()];
    best.attempt([&] {
      const auto part = partition(graph, target, problem.device_count(), imbalance, mix(options.seed, trial), watch);
      return place_parts(problem, graph, part, watch);
    });
  }
  return std::move(best).finish();
}

}  // namespace doppler
