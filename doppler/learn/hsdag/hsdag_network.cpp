#include "doppler/learn/hsdag/hsdag_network.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/error.h"

namespace doppler {
namespace {

constexpr double kFirstAttraction = 5;  // Parents attract by e⁵ at first.

// −ln(−ln u): with it on the logit of each edge, the largest is a draw by their softmax.
float gumbel(std::uint64_t seed, std::uint64_t index) {
  const double u = (static_cast<double>(mix(seed, index) >> 11) + 0.5) * 0x1.0p-53;
  return static_cast<float>(-std::log(-std::log(u)));
}

}  // namespace

template <typename Real>
HsdagNetwork<Real>::HsdagNetwork(const HsdagShape& shape, Rng rng) : shape_(shape), parameters_(rng) {
  const std::size_t c = shape.width;
  const auto layer = [&](std::size_t inputs, std::size_t outputs) {
    return std::make_unique<Linear<Real>>(parameters_, inputs, outputs);
  };
  const auto norm = [&] { return std::make_unique<LayerNorm<Real>>(parameters_, c); };
  input_[0] = layer(kHsdagColumns, c), input_norm_[0] = norm();
  input_[1] = layer(c, c), input_norm_[1] = norm();
  twice_[0] = layer(c, c), twice_[1] = layer(c, c), twice_norm_ = norm();
  once_ = layer(c, c), once_norm_ = norm();
  score_ = layer(c, c), score_norm_ = norm();
  score_weights_ = parameters_.weights(c, 1);
  score_weights_ = {score_weights_.begin, 1, c};
  pre_ = layer(c, c), pre_norm_ = norm();
  post_ = layer(c, c), post_norm_ = norm();
  if (shape.variant == HsdagVariant::fine) {
    placer_[0] = layer(c, c), placer_[1] = layer(c, c);
    below_[0] = layer(c, c), below_[1] = layer(c, c);
    attraction_ = parameters_.constants(1, 1, kFirstAttraction);
    wish_ = layer(c, kDeviceFeatureCount);
  } else {
    output_[0] = layer(c, c), output_[1] = layer(c, kHsdagColumns);
    placer_[0] = layer(kHsdagColumns, 4 * c), placer_[1] = layer(4 * c, c);
  }
  devices_ = parameters_.weights(kMostDevices, c);
  speed_ = parameters_.constants(1, 1, 0);
}

// D^-1/2 (A + I) D^-1/2.
template <typename Real>
auto HsdagNetwork<Real>::normalised(Kept& kept, const LevelGraph& graph,
                                    std::span<const LevelGraph::Edge> undirected) const -> Adjacency {
  std::vector<Real> degree(graph.node_count, 1);
  for (const auto& [u, v] : undirected) degree[u] += 1, degree[v] += 1;
  std::vector<std::uint32_t>&from = kept.indices.emplace_back(), &to = kept.indices.emplace_back();
  std::vector<Real>& weight = kept.reals.emplace_back();
  const auto add = [&](std::uint32_t u, std::uint32_t v) {
    from.push_back(u);
    to.push_back(v);
    weight.push_back(1 / std::sqrt(degree[u] * degree[v]));
  };
  for (std::uint32_t node = 0; node < graph.node_count; ++node) add(node, node);
  for (const auto& [u, v] : undirected) add(u, v), add(v, u);
  return {from, to, weight};
}

template <typename Real>
auto HsdagNetwork<Real>::convolve(Tape<Real>& tape, const Layer& layer, const Adjacency& adjacency, Matrix x)
    -> Matrix {
  const Matrix gathered = tape.messages(x, adjacency.from, adjacency.to, tape.row_count(x), adjacency.weight);
  return tape.relu((*layer)(tape, gathered));
}

template <typename Real>
auto HsdagNetwork<Real>::residual(Tape<Real>& tape, const Layer& layer, const Norm& norm, Matrix x) -> Matrix {
  return (*norm)(tape, tape.sum(x, (*layer)(tape, x)));
}

template <typename Real>
auto HsdagNetwork<Real>::scores(Tape<Real>& tape, Kept& kept, std::span<const LevelGraph::Edge> edges, Matrix g)
    -> Matrix {
  std::vector<std::uint32_t>&first = kept.indices.emplace_back(), &second = kept.indices.emplace_back();
  for (const auto& [u, v] : edges) first.push_back(u), second.push_back(v);
  const Matrix both = tape.elementwise(tape.rows(g, first), tape.rows(g, second));
  const Matrix hidden = tape.relu((*score_norm_)(tape, (*score_)(tape, both)));
  return tape.row_dots(hidden, parameters_.on(tape, score_weights_));
}

// Embeddings of the groups. With the scores of the edges, clusters of several nodes are multiplied by the mean score
// inside, and as published by the number of directed edges inside too.
template <typename Real>
auto HsdagNetwork<Real>::pooled(Tape<Real>& tape, Kept& kept, const Grouping& grouping, Matrix g,
                                std::span<const LevelGraph::Edge> edges, const Matrix* scores) -> Matrix {
  const std::vector<std::uint32_t>& group = kept.indices.emplace_back(grouping.group_of_node);
  const Matrix summed = tape.row_sums(residual(tape, pre_, pre_norm_, g), group, grouping.group_count);
  const Matrix result = residual(tape, post_, post_norm_, summed);
  if (scores == nullptr) return result;
  std::vector<Real> inside(grouping.group_count);
  for (const auto& [u, v] : edges)
    if (group[u] == group[v]) inside[group[u]] += 1;
  std::vector<std::uint32_t>& to = kept.indices.emplace_back();
  std::vector<Real>&weight = kept.reals.emplace_back(), &alone = kept.reals.emplace_back(grouping.group_count);
  for (const auto& [u, v] : edges) {
    const bool counts = group[u] == group[v];
    to.push_back(group[u]);
    weight.push_back(!counts ? 0 : shape_.variant == HsdagVariant::published ? 2 : 1 / inside[group[u]]);
  }
  for (std::uint32_t i = 0; i < grouping.group_count; ++i) alone[i] = inside[i] == 0 ? 1 : 0;
  const Matrix means = tape.row_sums(tape.sigmoid(*scores), to, grouping.group_count, weight);
  return tape.scaled_rows(result, tape.sum(means, tape.constant(grouping.group_count, 1, alone.data())));
}

template <typename Real>
auto HsdagNetwork<Real>::logits(Tape<Real>& tape, Kept& kept, const Layer& hidden, const Layer& query, Matrix x,
                                std::span<const float> speeds, DeviceId devices) -> Matrix {
  const Matrix queries = (*query)(tape, tape.relu((*hidden)(tape, x)));
  const Matrix vectors = tape.row_range(parameters_.on(tape, devices_), 0, devices);
  const std::vector<Real>& speed = kept.reals.emplace_back(speeds.begin(), speeds.end());
  const Matrix faster = tape.product(tape.constant(speed.size(), 1, speed.data()), parameters_.on(tape, speed_));
  return tape.sum(tape.product_transposed(queries, vectors), tape.reshaped(faster, tape.row_count(x), devices));
}

template <typename Real>
auto HsdagNetwork<Real>::parse(Tape<Real>& tape, const HsdagInput& input, const std::vector<Real>& features,
                               std::uint64_t noise) -> const Parse& {
  Kept& kept = kept_.emplace_back();
  const DeviceId devices = input.device_count();
  const bool fine = shape_.variant == HsdagVariant::fine;
  DOPPLER_CHECK(devices <= kMostDevices, "{} devices", devices);
  LevelGraph graph = first_level(input).graph;
  std::vector<float> seconds(input.seconds().begin(), input.seconds().end());
  const auto join_seconds = [&](std::span<const std::uint32_t> group_of_node, std::uint32_t groups) {
    seconds = group_seconds(seconds, devices, group_of_node, groups);
  };
  if (!fine) join_seconds(input.group_of_unit(), input.groups().graph.node_count);

  Matrix h = tape.constant(graph.node_count, kHsdagColumns, features.data());
  for (int i = 0; i < 2; ++i) h = tape.relu((*input_norm_[i])(tape, (*input_[i])(tape, h)));
  // In the fine variant the first merge is that of the colocated units, which nothing learns.
  bool parsing = !fine, done = false;
  while (!done) {
    const auto edges = undirected_edges(graph);
    const Adjacency adjacency = normalised(kept, graph, edges);
    const Matrix g = (*once_norm_)(tape, tape.sum(h, convolve(tape, once_, adjacency, h)));
    Grouping grouping;
    if (!parsing) {
      grouping = {{input.group_of_unit().begin(), input.group_of_unit().end()}, input.groups().graph.node_count};
      h = pooled(tape, kept, grouping, g, edges, nullptr);
    } else if (shape_.metis) {
      grouping = input.clusters();
      h = pooled(tape, kept, grouping, g, edges, nullptr);
    } else {
      const Matrix inner = convolve(tape, twice_[0], adjacency, h);
      const Matrix scored =
          scores(tape, kept, edges, (*twice_norm_)(tape, tape.sum(h, convolve(tape, twice_[1], adjacency, inner))));
      std::vector<float> drawn(edges.size());
      for (std::size_t e = 0; e < edges.size(); ++e)
        drawn[e] = static_cast<float>(tape.value(scored)[e]) + (noise == 0 ? 0 : gumbel(noise, e));
      const bool published = shape_.variant == HsdagVariant::published;
      grouping = parsed(graph.node_count, edges, drawn, published ? 0 : fewest_clusters(graph.node_count, devices));
      h = pooled(tape, kept, grouping, g, edges, &scored);
    }
    Level level{.node_count = graph.node_count, .parent = grouping.group_of_node, .decides = fine};
    if (fine) level.logits = logits(tape, kept, below_[0], below_[1], g, relative_speeds(seconds, devices), devices);
    if (fine && !parsing) level.wishes = (*wish_)(tape, g);
    kept.parse.levels.push_back(std::move(level));
    join_seconds(grouping.group_of_node, grouping.group_count);
    // The repaired variants parse once; the published one goes on until nothing changes.
    const bool changed = grouping.group_count < graph.node_count;
    graph = contracted(graph, grouping.group_of_node, grouping.group_count);
    done = parsing && (shape_.variant != HsdagVariant::published || !changed);
    parsing = true;
  }
  Level top{.node_count = graph.node_count, .decides = true};
  Matrix seen = h;
  if (!fine) seen = kept.parse.output = (*output_[1])(tape, tape.relu((*output_[0])(tape, h)));
  top.logits = logits(tape, kept, placer_[0], placer_[1], seen, relative_speeds(seconds, devices), devices);
  kept.parse.levels.push_back(std::move(top));
  return kept.parse;
}

template class HsdagNetwork<float>;
template class HsdagNetwork<double>;

}  // namespace doppler
