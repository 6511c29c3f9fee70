#include "doppler/learn/level_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "doppler/base/rng.h"

namespace doppler {
namespace {

class UnionFind {
 public:
  explicit UnionFind(std::uint32_t count) : parent_(count), sets_(count) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  std::uint32_t find(std::uint32_t node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  void unite(std::uint32_t a, std::uint32_t b) {
    a = find(a);
    b = find(b);
    if (a == b) return;
    parent_[std::max(a, b)] = std::min(a, b);
    --sets_;
  }
  std::uint32_t sets() const { return sets_; }

  // Numbers the sets by their first node, which is the root of each.
  Grouping grouping() {
    Grouping result;
    result.group_of_node.resize(parent_.size());
    for (std::uint32_t node = 0; node < parent_.size(); ++node) {
      const std::uint32_t root = find(node);
      result.group_of_node[node] = root == node ? result.group_count++ : result.group_of_node[root];
    }
    return result;
  }

 private:
  std::vector<std::uint32_t> parent_;
  std::uint32_t sets_;
};

// Neighbours in either direction, as flat lists.
struct Neighbours {
  explicit Neighbours(const LevelGraph& graph) : begin(graph.node_count + 1) {
    const auto edges = undirected_edges(graph);
    for (const auto& [u, v] : edges) ++begin[u + 1], ++begin[v + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    nodes.resize(2 * edges.size());
    std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
    for (const auto& [u, v] : edges) nodes[next[u]++] = v, nodes[next[v]++] = u;
  }
  std::span<const std::uint32_t> of(std::uint32_t node) const {
    return std::span(nodes).subspan(begin[node], begin[node + 1] - begin[node]);
  }

  std::vector<std::uint32_t> begin, nodes;
};

// Breadth-first search from one node after the other, without clearing anything between them.
class Ball {
 public:
  explicit Ball(const Neighbours& neighbours)
      : neighbours_(neighbours), reached_(neighbours.begin.size() - 1, 0), queue_(reached_.size()) {}

  // Calls visit(node, distance, false) for every other node, near ones first, and visit(centre, distance, true) at the
  // beginning of a distance, until it returns false.
  template <typename Visit>
  void grow(std::uint32_t centre, Visit visit) {
    std::size_t head = 0, tail = 0;
    std::uint32_t distance = 0;
    queue_[tail++] = centre;
    reached_[centre] = ++ball_;
    while (head < tail) {
      ++distance;
      const std::size_t layer = tail;
      if (!visit(centre, distance, true)) return;
      for (; head < layer; ++head)
        for (const std::uint32_t node : neighbours_.of(queue_[head])) {
          if (reached_[node] == ball_) continue;
          reached_[node] = ball_;
          queue_[tail++] = node;
          if (!visit(node, distance, false)) return;
        }
    }
  }

 private:
  const Neighbours& neighbours_;
  std::uint32_t ball_ = 0;              // The number of the ball, from 1.
  std::vector<std::uint32_t> reached_;  // By node: the last ball that reached it.
  std::vector<std::uint32_t> queue_;
};

// Σ ln r and Σ ln² r over the radii below each, so that a range of them is added at once.
struct LogSums {
  explicit LogSums(std::uint32_t radii) : x(radii + 2), xx(radii + 2) {
    for (std::uint32_t r = 1; r <= radii; ++r) {
      const double log = std::log(r);
      x[r + 1] = x[r] + log;
      xx[r + 1] = xx[r] + log * log;
    }
  }
  std::vector<double> x, xx;
};

// The least-squares slope of ln N over ln r, one point per radius.
class Slope {
 public:
  void add(double radius, double count) {
    const double x = std::log(radius), y = std::log(count);
    n_ += 1, x_ += x, y_ += y, xx_ += x * x, xy_ += x * y;
  }
  // The same number of nodes for all radii from `first` to before `last`.
  void add(const LogSums& sums, std::uint32_t first, std::uint32_t last, double count) {
    if (first >= last) return;
    const double y = std::log(count), x = sums.x[last] - sums.x[first];
    n_ += last - first, x_ += x, y_ += y * (last - first), xx_ += sums.xx[last] - sums.xx[first], xy_ += y * x;
  }
  float value() const {
    const double spread = n_ * xx_ - x_ * x_;
    return n_ < 2 || spread <= 0 ? 0 : static_cast<float>((n_ * xy_ - x_ * y_) / spread);
  }

 private:
  double n_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;
};

std::vector<float> exact_fractal_dimensions(const LevelGraph& graph) {
  const Neighbours neighbours(graph);
  Ball ball(neighbours);
  std::vector<float> result(graph.node_count);
  std::vector<std::uint32_t> at_distance;
  for (std::uint32_t centre = 0; centre < graph.node_count; ++centre) {
    at_distance.clear();
    ball.grow(centre, [&](std::uint32_t, std::uint32_t distance, bool layer) {
      if (layer)
        at_distance.push_back(0);
      else
        ++at_distance[distance - 1];
      return true;
    });
    Slope slope;
    double within = 0;
    for (std::size_t i = 0; i < at_distance.size() && at_distance[i] > 0; ++i)
      slope.add(static_cast<double>(i + 1), within += at_distance[i]);
    result[centre] = slope.value();
  }
  return result;
}

}  // namespace

LevelGraph contracted(const LevelGraph& graph, std::span<const std::uint32_t> group_of_node,
                      std::uint32_t group_count) {
  LevelGraph result{.node_count = group_count};
  for (const auto& [from, to] : graph.edges)
    if (group_of_node[from] != group_of_node[to]) result.edges.emplace_back(group_of_node[from], group_of_node[to]);
  std::sort(result.edges.begin(), result.edges.end());
  result.edges.erase(std::unique(result.edges.begin(), result.edges.end()), result.edges.end());
  return result;
}

Grouping colocated(const LevelGraph& graph, Colocation rule) {
  std::vector<std::uint32_t> predecessors(graph.node_count), successors(graph.node_count);
  for (const auto& [from, to] : graph.edges) ++successors[from], ++predecessors[to];
  UnionFind groups(graph.node_count);
  for (const auto& [from, to] : graph.edges)
    if (predecessors[to] == 1 && (rule == Colocation::published || successors[from] == 1)) groups.unite(from, to);
  return groups.grouping();
}

std::vector<LevelGraph::Edge> undirected_edges(const LevelGraph& graph) {
  std::vector<LevelGraph::Edge> edges;
  for (const auto& [from, to] : graph.edges) edges.emplace_back(std::min(from, to), std::max(from, to));
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

Grouping parsed(std::uint32_t node_count, std::span<const LevelGraph::Edge> undirected, std::span<const float> scores,
                std::uint32_t fewest) {
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> dominant(node_count, kNone);
  for (std::uint32_t e = 0; e < undirected.size(); ++e)
    for (const std::uint32_t node : {undirected[e].first, undirected[e].second})
      if (dominant[node] == kNone || scores[e] > scores[dominant[node]]) dominant[node] = e;
  std::erase(dominant, kNone);
  std::sort(dominant.begin(), dominant.end(),
            [&](std::uint32_t a, std::uint32_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  UnionFind clusters(node_count);
  for (const std::uint32_t e : dominant)
    if (clusters.sets() > fewest) clusters.unite(undirected[e].first, undirected[e].second);
  return clusters.grouping();
}

std::vector<float> fractal_dimensions(const LevelGraph& graph, std::uint64_t seed) {
  return graph.node_count <= kExactNodes ? exact_fractal_dimensions(graph) : sampled_fractal_dimensions(graph, seed);
}

std::vector<float> sampled_fractal_dimensions(const LevelGraph& graph, std::uint64_t seed) {
  // Balls grow until they have this many nodes, and within one distance to at most kMostNear, so that the neighbours of
  // a hub do not walk through all of each other. Samples are fewer for very large graphs, so that their distances stay
  // within some hundred megabytes.
  constexpr std::uint32_t kNear = 64, kMostNear = 512, kMostSamples = 256;
  constexpr std::uint64_t kMostDistances = std::uint64_t{1} << 26;
  const std::uint32_t n = graph.node_count;
  const auto samples = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      std::min(n, kMostSamples), std::max<std::uint64_t>(kMostDistances / std::max(n, 1u), 16)));
  const Neighbours neighbours(graph);
  Ball ball(neighbours);
  Rng rng(seed);
  constexpr std::uint16_t kFar = 0xffff;
  std::vector<std::uint16_t> distance(std::size_t{n} * samples, kFar);
  std::uint32_t farthest = 1;
  for (std::uint32_t s = 0; s < samples; ++s)
    ball.grow(rng.below(n), [&](std::uint32_t node, std::uint32_t steps, bool layer) {
      const std::uint32_t capped = std::min<std::uint32_t>(steps, kFar - 1);
      if (!layer) distance[std::size_t{node} * samples + s] = static_cast<std::uint16_t>(capped);
      farthest = std::max(farthest, capped);
      return true;
    });
  const LogSums sums(farthest + 1);
  std::vector<float> result(n);
  Ball near_ball(neighbours);
  for (std::uint32_t centre = 0; centre < n; ++centre) {
    Slope slope;
    std::uint32_t within = 0, counted = 0, radius = 0;
    near_ball.grow(centre, [&](std::uint32_t, std::uint32_t steps, bool layer) {
      if (!layer) return ++within < kMostNear;
      if (steps > 1 && within > counted) slope.add(radius, counted = within);
      radius = steps;
      return within < kNear;
    });
    if (within > counted && within < kNear) slope.add(radius, within);
    const auto row = std::span(distance).subspan(std::size_t{centre} * samples, samples);
    std::sort(row.begin(), row.end());
    const auto reachable = static_cast<std::size_t>(std::lower_bound(row.begin(), row.end(), kFar) - row.begin());
    // A distance stands for all radii up to the next one that was met.
    for (std::size_t i = 0; within >= kNear && i < reachable; ++i) {
      const std::uint32_t first = std::max<std::uint32_t>(row[i], radius);
      const std::uint32_t last = i + 1 < reachable ? row[i + 1] : row[i] + 1u;
      slope.add(sums, first, last, std::max<double>(static_cast<double>(i + 1) / samples * (n - 1), within));
    }
    result[centre] = slope.value();
  }
  return result;
}

}  // namespace doppler
