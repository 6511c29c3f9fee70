#pragma once

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "doppler/base/rng.h"
#include "doppler/sim/simulator.h"
#include "tests/support/problems.h"

namespace doppler::test {

// A graph of a few ops: their times by device type, and edges with transfer times. An edge is its own tensor.
struct SmallGraph {
  struct Edge {
    OpId src, dst;
    Seconds transfer;
  };
  std::vector<std::map<std::string, Seconds>> times;
  std::vector<Edge> edges;
  std::vector<std::string> groups = {};
  std::vector<Bytes> parameters = {};

  Graph build() const {
    GraphBuilder builder("small");
    for (std::size_t i = 0; i < times.size(); ++i) {
      OpSpec spec;
      spec.explicit_times = times[i];
      if (!groups.empty()) spec.group = groups[i];
      if (!parameters.empty()) spec.parameter_bytes = parameters[i];
      builder.add_op(spec);
    }
    for (const Edge& edge : edges) builder.add_consumer(builder.add_tensor(edge.src, 0, edge.transfer), edge.dst);
    return std::move(builder).build();
  }
};

// The same time on every device.
inline std::vector<std::map<std::string, Seconds>> anywhere(const std::vector<Seconds>& times) {
  std::vector<std::map<std::string, Seconds>> result;
  for (const Seconds time : times) result.push_back({{"*", time}});
  return result;
}

// Integer times up to 9 (sometimes 0), edges with probability one half, transfers up to 12.
inline SmallGraph random_small_graph(Rng& rng, OpId ops) {
  SmallGraph graph;
  for (OpId op = 0; op < ops; ++op) {
    graph.times.push_back({{"*", rng.below(10)}});
    for (OpId src = 0; src < op; ++src)
      if (rng.below(2) == 0) graph.edges.push_back({src, op, static_cast<Seconds>(rng.below(13))});
  }
  return graph;
}

// Everything that complicates a small problem, at random: two speeds, one or two slots, a colocation group, a
// pin.
struct MixedProblem {
  Graph graph;
  Machine machine;
  std::vector<Pin> pins;
};
inline MixedProblem random_mixed_problem(Rng& rng) {
  SmallGraph small = random_small_graph(rng, 5);
  for (auto& times : small.times)
    if (rng.below(2) == 0) times["b"] = rng.below(10);
  if (rng.below(2) == 0) small.groups = {"g", "", "g", "", ""};
  std::vector<Pin> pins;
  if (rng.below(2) == 0) pins.push_back({rng.below(5), rng.below(2)});
  const unsigned slots = 1 + rng.below(2);
  return {small.build(), machine_of({"a", "b"}, 0, slots), pins};
}

// The best makespan there is: every allowed assignment and, where the discipline reads it, every priority.
// Infinite if nothing fits in memory.
inline Seconds best_by_brute_force(const Problem& problem) {
  const OpId n = problem.op_count();
  const Discipline discipline = problem.rules().discipline;
  const bool ranked = discipline == Discipline::priority || discipline == Discipline::ordered;
  Simulator simulator(problem);
  Seconds best = Costs::kNever;
  Placement placement;
  placement.device_of_op.assign(n, 0);
  while (true) {
    bool allowed = true;
    for (OpId op = 0; op < n; ++op)
      allowed = allowed && problem.allows(op, placement.device_of_op[op]) &&
                placement.device_of_op[op] == placement.device_of_op[problem.unit(op).front()];
    placement.priority.clear();
    if (ranked) {
      placement.priority.resize(n);
      std::iota(placement.priority.begin(), placement.priority.end(), 0);
    }
    do {
      if (!allowed) break;
      const Seconds makespan = simulator.makespan(placement);
      if (makespan < best && (!problem.memory_limited() || simulator.simulate(placement).feasible())) best = makespan;
    } while (std::next_permutation(placement.priority.begin(), placement.priority.end()));
    OpId digit = 0;  // the next assignment, as a number with a digit per op
    while (digit < n && ++placement.device_of_op[digit] == problem.device_count()) placement.device_of_op[digit++] = 0;
    if (digit == n) return best;
  }
}

}  // namespace doppler::test
