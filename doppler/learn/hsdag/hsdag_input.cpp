#include "doppler/learn/hsdag/hsdag_input.h"

#include <algorithm>
#include <cmath>

#include "doppler/place/partition/metis.h"

namespace doppler {
namespace {

constexpr std::size_t kDegrees = kHsdagFeatures[1].columns / 2;
constexpr std::size_t kExtents = 4;

void write_output_shape(const Graph& graph, OpId op, float* to) {
  double bytes = 0;
  for (const TensorId tensor : graph.outputs(op)) bytes += static_cast<double>(graph.bytes(tensor));
  to[kExtents] = static_cast<float>(std::log1p(bytes));
  if (graph.outputs(op).size() == 0) return;
  const auto shape = graph.shape(graph.outputs(op).first);
  for (std::size_t i = 0; i < std::min(kExtents, shape.size()); ++i)
    to[kExtents - 1 - i] = static_cast<float>(std::log1p(static_cast<double>(shape[shape.size() - 1 - i])));
}

}  // namespace

std::uint32_t fewest_clusters(std::uint32_t groups, DeviceId devices) {
  constexpr std::uint32_t kGroupsPerCluster = 3;  // A prototype's measurements: stopping at a third did best.
  return std::max<std::uint32_t>(devices, groups / kGroupsPerCluster);
}

HsdagInput::HsdagInput(const Problem& problem, const Options& options) : base_(problem) {
  units_.graph = base_.graph();
  units_.speeds = relative_speeds(base_.seconds(), device_count());
  write_features();
  const Grouping grouping = colocated(units_.graph, options.rule);
  group_of_unit_ = grouping.group_of_node;
  groups_.graph = contracted(units_.graph, group_of_unit_, grouping.group_count);
  groups_.features = group_means(units_.features, kHsdagColumns, group_of_unit_, grouping.group_count);
  groups_.speeds = relative_speeds(group_seconds(base_.seconds(), device_count(), group_of_unit_, grouping.group_count),
                                   device_count());
  if (options.metis) find_metis_clusters();
  if (options.state) ops_.emplace(problem);
}

// Clusters are numbered by their first group.
void HsdagInput::find_metis_clusters() {
  constexpr std::uint64_t kSeed = 1;  // The clusters of a problem are always the same.
  const std::uint32_t groups = groups_.graph.node_count, wanted = fewest_clusters(groups, device_count());
  std::vector<std::uint32_t> group_of_op;
  for (const std::uint32_t unit : base_.unit_of_op()) group_of_op.push_back(group_of_unit_[unit]);
  clusters_.group_of_node = metis_clusters(problem(), group_of_op, groups, wanted, kSeed);
  std::vector<std::uint32_t> number(wanted, wanted);
  for (std::uint32_t& cluster : clusters_.group_of_node) {
    if (number[cluster] == wanted) number[cluster] = clusters_.group_count++;
    cluster = number[cluster];
  }
}

void HsdagInput::write_features() {
  const Graph& graph = problem().graph();
  const std::uint32_t count = base_.count();
  const std::vector<float> fractal = fractal_dimensions(units_.graph);
  std::vector<std::uint32_t> producers(count), consumers(count);
  for (const auto& [from, to] : units_.graph.edges) ++consumers[from], ++producers[to];
  units_.features.assign(count * kHsdagColumns, 0);
  for (std::uint32_t unit = 0; unit < count; ++unit) {
    const OpId op = first_op()[unit];
    float* row = units_.features.data() + unit * kHsdagColumns;
    row[kind_column(graph.kind(op))] = 1;
    row += kKindColumns;
    row[std::min<std::size_t>(producers[unit], kDegrees - 1)] = 1;
    row[kDegrees + std::min<std::size_t>(consumers[unit], kDegrees - 1)] = 1;
    row += 2 * kDegrees;
    *row++ = fractal[unit];
    write_position(unit, row);
    row += 2 * kWaves;
    write_output_shape(graph, op, row);
    row += kExtents + 1;
    *row = static_cast<float>(unit);
  }
  const std::size_t shape = kKindColumns + 2 * kDegrees + 1 + 2 * kWaves;
  standardise(units_.features, kHsdagColumns, kKindColumns + 2 * kDegrees);
  for (std::size_t column = shape; column < kHsdagColumns; ++column)
    standardise(units_.features, kHsdagColumns, column);
}

}  // namespace doppler
