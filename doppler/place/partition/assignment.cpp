#include "doppler/place/partition/assignment.h"

#include <limits>

#include "doppler/base/error.h"

namespace doppler {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// Rows enter one by one. Dual prices keep cost(r, c) - row_price[r] - column_price[c] >= 0, with equality on
// the matched pairs, which proves the matching so far to be the cheapest.
class Matching {
 public:
  Matching(std::span<const double> cost, std::uint32_t rows, std::uint32_t columns)
      : cost_(cost), columns_(columns), row_price_(rows, 0.0), column_price_(columns, 0.0), row_of_(columns, kNone) {}

  // Dijkstra over reduced costs from `row` to the nearest unmatched column; then flips the path.
  void add(std::uint32_t row, Watch& watch) {
    std::vector<double> distance(columns_, std::numeric_limits<double>::infinity());
    std::vector<std::uint32_t> previous(columns_, kNone);  // column before this one on the path
    std::vector<char> done(columns_, 0);
    std::uint32_t last = kNone, current_row = row;
    double reached = 0;
    while (true) {
      watch.step(columns_);
      std::uint32_t nearest = kNone;
      for (std::uint32_t c = 0; c < columns_; ++c) {
        if (done[c]) continue;
        const double through = reached + reduced(current_row, c);
        if (through < distance[c]) distance[c] = through, previous[c] = last;
        if (nearest == kNone || distance[c] < distance[nearest]) nearest = c;
      }
      reached = distance[nearest];
      last = nearest;
      if (row_of_[nearest] == kNone) break;
      done[nearest] = 1;
      current_row = row_of_[nearest];
    }
    row_price_[row] += reached;
    for (std::uint32_t c = 0; c < columns_; ++c) {
      if (!done[c]) continue;
      row_price_[row_of_[c]] += reached - distance[c];
      column_price_[c] -= reached - distance[c];
    }
    for (std::uint32_t c = last; c != kNone; c = previous[c])
      row_of_[c] = previous[c] == kNone ? row : row_of_[previous[c]];
  }

  std::vector<std::uint32_t> columns_of_rows() const {
    std::vector<std::uint32_t> result(row_price_.size());
    for (std::uint32_t c = 0; c < columns_; ++c)
      if (row_of_[c] != kNone) result[row_of_[c]] = c;
    return result;
  }

 private:
  double reduced(std::uint32_t row, std::uint32_t column) const {
    return cost_[std::size_t{row} * columns_ + column] - row_price_[row] - column_price_[column];
  }

  std::span<const double> cost_;
  std::uint32_t columns_;
  std::vector<double> row_price_, column_price_;
  std::vector<std::uint32_t> row_of_;  // per column
};

}  // namespace

std::vector<std::uint32_t> least_cost_assignment(std::span<const double> cost, std::uint32_t rows,
                                                 std::uint32_t columns, Watch& watch) {
  DOPPLER_CHECK(rows <= columns && cost.size() == std::size_t{rows} * columns, "{} costs, {} rows, {} columns",
                cost.size(), rows, columns);
  Matching matching(cost, rows, columns);
  for (std::uint32_t row = 0; row < rows; ++row) matching.add(row, watch);
  return matching.columns_of_rows();
}

}  // namespace doppler
