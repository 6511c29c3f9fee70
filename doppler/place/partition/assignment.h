#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "doppler/budget.h"

namespace doppler {

// The assignment problem: a different column for every row at the least total cost (Kuhn 1955, "Hungarian
// method", in the form with shortest augmenting paths). `cost` is row-major with finite entries, rows <=
// columns. O(rows² columns). Of equal columns the first tends to be taken. Throws OutOfTime.
std::vector<std::uint32_t> least_cost_assignment(std::span<const double> cost, std::uint32_t rows,
                                                 std::uint32_t columns, Watch& watch);

}  // namespace doppler
