#include "doppler/base/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "doppler/base/error.h"

namespace doppler {
namespace {

// 1 for the smallest; equal values get their mean.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    for (std::size_t i = first; i < last; ++i) result[order[i]] = static_cast<double>(first + last + 1) / 2;
  }
  return result;
}

}  // namespace

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double quantile(std::vector<double> values, double q) {
  DOPPLER_CHECK(!values.empty() && q >= 0 && q <= 1, "the {}-quantile of {} values", q, values.size());
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

double trimmed_mean(std::vector<double> values, double share) {
  DOPPLER_CHECK(!values.empty() && share >= 0 && share < 0.5, "the mean of {} values without {}", values.size(), share);
  std::sort(values.begin(), values.end());
  const auto cut = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size()));
  return std::accumulate(values.begin() + cut, values.end() - cut, 0.0) /
         static_cast<double>(values.size() - 2 * static_cast<std::size_t>(cut));
}

std::vector<double> steady_medians(const std::vector<std::vector<double>>& rows) {
  std::vector<double> result, delays;
  for (const std::vector<double>& row : rows) {
    result.push_back(quantile(row, 0.1));
    delays.push_back(median(row) / result.back());
  }
  const double usual = median(std::move(delays));
  for (double& value : result) value *= usual;
  return result;
}

double pearson(std::span<const double> x, std::span<const double> y) {
  DOPPLER_CHECK(x.size() == y.size() && x.size() >= 2, "correlation of {} and {} values", x.size(), y.size());
  const auto n = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

double spearman(std::span<const double> x, std::span<const double> y) { return pearson(ranks(x), ranks(y)); }

double probability_not_smaller(std::span<const double> x, std::span<const double> y) {
  DOPPLER_CHECK(!x.empty() && !y.empty(), "a test of {} against {} values", x.size(), y.size());
  std::vector<double> all(x.begin(), x.end());
  all.insert(all.end(), y.begin(), y.end());
  const std::vector<double> rank = ranks(all);
  const auto n = static_cast<double>(x.size()), m = static_cast<double>(y.size());
  const double rank_sum = std::accumulate(rank.begin(), rank.begin() + static_cast<std::ptrdiff_t>(x.size()), 0.0);
  const double u = rank_sum - n * (n + 1) / 2;  // pairs in which x is larger
  std::sort(all.begin(), all.end());
  double ties = 0;
  for (std::size_t first = 0, last = 0; first < all.size(); first = last) {
    while (last < all.size() && all[last] == all[first]) ++last;
    const auto t = static_cast<double>(last - first);
    ties += t * t * t - t;
  }
  const double variance = n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1)));
  if (variance <= 0) return 1;
  const double z = (u + 0.5 - n * m / 2) / std::sqrt(variance);
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

}  // namespace doppler
