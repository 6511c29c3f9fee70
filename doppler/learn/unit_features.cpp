#include "doppler/learn/unit_features.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "doppler/base/error.h"

namespace doppler {

// FNV-1a.
std::size_t kind_column(std::string_view kind) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char c : kind) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return value % kKindColumns;
}

void write_position(std::uint32_t place, float* to) {
  for (std::size_t wave = 0; wave < kWaves; ++wave) {
    const double angle = place / std::pow(1e4, static_cast<double>(wave) / kWaves);
    *to++ = static_cast<float>(std::sin(angle));
    *to++ = static_cast<float>(std::cos(angle));
  }
}

void standardise(std::span<float> matrix, std::size_t columns, std::size_t column) {
  const std::size_t rows = matrix.size() / columns;
  double mean = 0, variance = 0;
  for (std::size_t row = 0; row < rows; ++row) mean += static_cast<double>(matrix[row * columns + column]);
  mean /= static_cast<double>(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const double difference = static_cast<double>(matrix[row * columns + column]) - mean;
    variance += difference * difference / static_cast<double>(rows);
  }
  const double scale = variance > 1e-12 ? 1 / std::sqrt(variance) : 0;
  for (std::size_t row = 0; row < rows; ++row) {
    float& value = matrix[row * columns + column];
    value = static_cast<float>((static_cast<double>(value) - mean) * scale);
  }
}

std::vector<float> unit_features(const Units& units, Watch watch) {
  const Graph& graph = units.problem().graph();
  const std::vector<float> costs = group_means(PolicyInput(units.problem(), watch).node_features(), kNodeFeatureCount,
                                               units.unit_of_op(), units.count());
  std::vector<float> result(units.count() * kUnitColumns);
  for (std::uint32_t unit = 0; unit < units.count(); ++unit) {
    watch.step(4 * kUnitColumns);
    float* row = result.data() + unit * kUnitColumns;
    row[kind_column(graph.kind(units.first_op()[unit]))] = 1;
    row += kKindColumns;
    write_position(unit, row);
    std::copy_n(costs.data() + unit * kNodeFeatureCount, kNodeFeatureCount, row + 2 * kWaves);
  }
  for (std::size_t column = 0; column < kUnitColumns; ++column) {
    watch.step(units.count());
    standardise(result, kUnitColumns, column);
  }
  return result;
}

std::vector<float> group_means(std::span<const float> rows, std::size_t columns,
                               std::span<const std::uint32_t> group_of_row, std::uint32_t group_count) {
  std::vector<float> result(group_count * columns);
  std::vector<float> size(group_count);
  for (const std::uint32_t group : group_of_row) size[group] += 1;
  for (std::size_t row = 0; row < group_of_row.size(); ++row)
    for (std::size_t i = 0; i < columns; ++i)
      result[group_of_row[row] * columns + i] += rows[row * columns + i] / size[group_of_row[row]];
  return result;
}

Blindness::Blindness(std::span<const FeatureGroup> features) : features_(features.begin(), features.end()) {
  for (const FeatureGroup& feature : features) names_.push_back(feature.name);
}

void Blindness::add(std::string_view part, const Policy& policy) {
  const auto found = std::find(names_.begin(), names_.end(), part);
  if (found == names_.end())
    throw InputError(fmt::format("--without: found '{}'; required of {} '{}' one of {}", part, policy.name(),
                                 policy.architecture(), fmt::join(names_, ", ")));
  left_out_.push_back(*found);
}

}  // namespace doppler
