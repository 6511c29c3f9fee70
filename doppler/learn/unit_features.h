#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "doppler/learn/doppler/policy_input.h"
#include "doppler/learn/nn/layers.h"
#include "doppler/learn/units.h"

namespace doppler {

// Columns of a policy's input that belong together and can be left out together.
struct FeatureGroup {
  std::string_view name;
  std::size_t columns;
};

inline constexpr std::size_t kKindColumns = 16;
inline constexpr std::size_t kWaves = 8;
// The column of the kind of an op, one of kKindColumns by a hash of its name, so that files mean the same everywhere.
std::size_t kind_column(std::string_view kind);
// Sine and cosine of a place in topological order, by kWaves wavelengths.
void write_position(std::uint32_t place, float* to);
// Brings a column of a matrix to mean 0 and variance 1; one without variance becomes 0.
void standardise(std::span<float> matrix, std::size_t columns, std::size_t column);

// What the policies are told that see units and nothing of the devices chosen so far.
inline constexpr auto kUnitFeatures = std::to_array<FeatureGroup>({
    {"type", kKindColumns},        // The kind of its first op.
    {"position", 2 * kWaves},      // Its place among the units, without which equal units are placed alike.
    {"costs", kNodeFeatureCount},  // The mean over its ops of what DOPPLER is told of each: times, levels, degrees.
});
inline constexpr std::size_t kUnitColumns = 2 * kWaves + kKindColumns + kNodeFeatureCount;
// Row by row, units.count() × kUnitColumns, each column standardised over the graph: what all units have in common says
// nothing of where each should go. Throws OutOfTime if `watch` does.
std::vector<float> unit_features(const Units& units, Watch watch = Watch(Budget::unlimited()));
// The features of a group are the mean of its members'.
std::vector<float> group_means(std::span<const float> rows, std::size_t columns,
                               std::span<const std::uint32_t> group_of_row, std::uint32_t group_count);

// Which features a policy does not see. One whose weights are 0 and stay 0 is as good as absent.
class Blindness {
 public:
  explicit Blindness(std::span<const FeatureGroup> features);

  std::span<const std::string_view> names() const { return names_; }
  std::span<const std::string_view> left_out() const { return left_out_; }
  // Throws InputError, in the words of Policy::leave_out(), unless it is one of the features.
  void add(std::string_view part, const Policy& policy);
  // Zeroes the rows of the weights that read what is left out. `numbers` are all parameters, or all gradients.
  template <typename Slot>
  void apply(std::span<float> numbers, const Slot& weights) const {
    std::size_t row = 0;
    for (const FeatureGroup& feature : features_) {
      if (std::find(left_out_.begin(), left_out_.end(), feature.name) != left_out_.end())
        std::ranges::fill(numbers.subspan(weights.begin + row * weights.columns, feature.columns * weights.columns),
                          0.0F);
      row += feature.columns;
    }
  }

 private:
  std::vector<FeatureGroup> features_;
  std::vector<std::string_view> names_, left_out_;
};

}  // namespace doppler
