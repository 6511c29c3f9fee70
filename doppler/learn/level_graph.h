#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace doppler {

// One level of a hierarchy of graphs: nodes that stand for ops or for groups of them, and the edges between them with
// their direction, each once and none from a node to itself, in ascending order.
struct LevelGraph {
  using Edge = std::pair<std::uint32_t, std::uint32_t>;  // from, to

  std::uint32_t node_count = 0;
  std::vector<Edge> edges = {};
};

// The next level: group_of_node says what each node becomes part of.
LevelGraph contracted(const LevelGraph& graph, std::span<const std::uint32_t> group_of_node, std::uint32_t group_count);

// Which nodes join before anything is learned.
enum class Colocation : std::uint8_t {
  chain,      // u and v, if v is the only successor of u and u the only predecessor of v: what the paper means
  published,  // v and its only predecessor, whatever else that one feeds: what the published code does
};

// Groups of nodes, numbered by their first node.
struct Grouping {
  std::vector<std::uint32_t> group_of_node;
  std::uint32_t group_count = 0;
};
Grouping colocated(const LevelGraph& graph, Colocation rule);

// Graph parsing. Every node joins the neighbour at the other end of its dominant edge, the one with the highest score;
// what is then connected is a cluster. scores[i] belongs to undirected[i]. Joins are made in descending order of score
// until there are no more than `fewest` clusters; 0 is the published rule, by which every connected part of the graph
// ends as one cluster after a few levels, since each level halves it at least.
Grouping parsed(std::uint32_t node_count, std::span<const LevelGraph::Edge> undirected, std::span<const float> scores,
                std::uint32_t fewest);

// The edges without their direction, each once, the smaller node first.
std::vector<LevelGraph::Edge> undirected_edges(const LevelGraph& graph);

// The fractal dimension of each node: the slope of ln N(r) over ln r by least squares, where N(r) is the number of
// other nodes within r steps, whatever the direction of edges, over all radii up to the farthest node; 0 if that is one
// step away. Exact up to kExactNodes nodes, in O(nodes · edges). Beyond, near nodes are counted and the number of far
// ones is estimated from their distances to a sample of nodes, in O(edges · sample).
std::vector<float> fractal_dimensions(const LevelGraph& graph, std::uint64_t seed = 0);
inline constexpr std::uint32_t kExactNodes = 2000;
// The estimate, whatever the size.
std::vector<float> sampled_fractal_dimensions(const LevelGraph& graph, std::uint64_t seed);

}  // namespace doppler
