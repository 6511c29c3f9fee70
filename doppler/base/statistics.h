#pragma once

#include <span>
#include <vector>

namespace doppler {

// Of at least one value. An even number of them: the mean of the middle two.
double median(std::vector<double> values);
// The q-quantile, 0 <= q <= 1, by linear interpolation.
double quantile(std::vector<double> values, double q);
// The mean without the smallest and the largest `share` of the values, 0 <= share < 0.5.
double trimmed_mean(std::vector<double> values, double share);

// Of each row, its repeated timings on a box that others delay now and then: what its median would be if they delayed
// all rows alike. Delays hardly touch the lower decile; times the ratio of median to lower decile that is usual among
// the rows. All values are positive, no row is empty.
std::vector<double> steady_medians(const std::vector<std::vector<double>>& rows);

// Correlation of two samples of one length, at least two; 0 if one of them is constant.
double pearson(std::span<const double> x, std::span<const double> y);
double spearman(std::span<const double> x, std::span<const double> y);  // of the ranks; equal values share one

// One-sided test of Mann and Whitney (1947): the probability that samples of one distribution would show `x` at least
// this much smaller than `y`. By the normal approximation with ties and continuity corrected; use 5 values or more
// each.
double probability_not_smaller(std::span<const double> x, std::span<const double> y);

}  // namespace doppler
