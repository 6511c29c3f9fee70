#include "doppler/place/partition/assignment.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "doppler/base/rng.h"

namespace doppler {
namespace {

double total_cost(const std::vector<double>& cost, std::uint32_t columns, const std::vector<std::uint32_t>& chosen) {
  double total = 0;
  for (std::uint32_t row = 0; row < chosen.size(); ++row) total += cost[row * columns + chosen[row]];
  return total;
}

TEST(AnAssignment, MayTakeADearEntryToSaveMoreElsewhere) {
  Watch watch(Budget::unlimited());
  // Greedy takes (0, 0) = 1 and is left with (1, 1) = 10; 2 + 3 = 5 is less than 11.
  EXPECT_EQ(least_cost_assignment(std::vector<double>{1, 2, 3, 10}, 2, 2, watch), (std::vector<std::uint32_t>{1, 0}));
}

TEST(AnAssignment, HasTheCostOfTheBestPermutation) {
  Rng rng(5);
  Watch watch(Budget::unlimited());
  for (int instance = 0; instance < 200; ++instance) {
    const std::uint32_t columns = 1 + rng.below(5), rows = 1 + rng.below(columns);
    std::vector<double> cost(std::size_t{rows} * columns);
    for (double& value : cost) value = rng.below(8);  // integers: exact, and many ties
    std::vector<std::uint32_t> permutation(columns);
    std::iota(permutation.begin(), permutation.end(), 0);
    double best = 1e9;
    do {
      best = std::min(best, total_cost(cost, columns, {permutation.begin(), permutation.begin() + rows}));
    } while (std::next_permutation(permutation.begin(), permutation.end()));
    auto chosen = least_cost_assignment(cost, rows, columns, watch);
    EXPECT_EQ(total_cost(cost, columns, chosen), best);
    std::sort(chosen.begin(), chosen.end());
    EXPECT_EQ(std::adjacent_find(chosen.begin(), chosen.end()), chosen.end()) << "a column was taken twice";
  }
}

}  // namespace
}  // namespace doppler
