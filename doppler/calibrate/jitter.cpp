#include "doppler/calibrate/jitter.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "doppler/base/statistics.h"

namespace doppler {
namespace {

constexpr double kSigmas = 2 * 1.2816;      // of a normal distribution, between its 10 % and its 90 % quantile
constexpr double kOwnSigma = 1.25;          // a kind whose sigma differs by this factor has its own,
constexpr std::size_t kFewestOfKind = 50;   // if there are that many of its ops
constexpr double kBeyond = 4;               // sigmas from which on the tail begins,
const double kLeastBeyond = std::log(1.5);  // and the least that it begins with

struct Weighted {
  double value, weight;
};

double sum_of_weights(const std::vector<Weighted>& samples) {
  double sum = 0;
  for (const Weighted& sample : samples) sum += sample.weight;
  return sum;
}

void sort_by_value(std::vector<Weighted>& samples) {
  std::sort(samples.begin(), samples.end(), [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
}

// The first value at which at least `share` of the weight is reached; of sorted samples.
double weighted_quantile(const std::vector<Weighted>& sorted, double share) {
  const double total = sum_of_weights(sorted);
  double passed = 0;
  for (const Weighted& sample : sorted) {
    passed += sample.weight;
    if (passed >= share * total) return sample.value;
  }
  return sorted.back().value;
}

double sigma_of(const std::vector<Weighted>& sorted) {
  const double range = weighted_quantile(sorted, 0.9) - weighted_quantile(sorted, 0.1);
  return std::min(range / kSigmas, kMostJitter);
}

double normal_share(double value, double sigma) {
  if (sigma <= 0) return value >= 0 ? 1 : 0;
  return 0.5 * std::erfc(-value / (sigma * std::numbers::sqrt2));
}

// The share of an op's factors below exp(residual) times its median.
double modelled_share(const Jitter::Tail& tail, double sigma, double residual) {
  return (1 - tail.probability) * normal_share(residual, sigma) +
         tail.probability * normal_share(residual - std::log(tail.factor), sigma);
}

// The variance of an op's factor, whose mean is 1: E[body²]·E[tail²] / E[tail]² - 1.
double modelled_variance(const Jitter::Tail& tail, double sigma) {
  const double mean = 1 + tail.probability * (tail.factor - 1);
  const double square = 1 + tail.probability * (tail.factor * tail.factor - 1);
  return std::exp(sigma * sigma) * square / (mean * mean) - 1;
}

// The residual below which `share` of the model lies, for ops of several sigmas.
double modelled_quantile(const Jitter::Tail& tail, const std::map<double, double>& weight_of_sigma, double share) {
  double total = 0;
  for (const auto& [sigma, weight] : weight_of_sigma) total += weight;
  double low = -2 * kBeyond * kMostJitter, high = std::log(kMostTailFactor) - low;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = (low + high) / 2;
    double below = 0;
    for (const auto& [sigma, weight] : weight_of_sigma) below += weight * modelled_share(tail, sigma, middle);
    (below < share * total ? low : high) = middle;
  }
  return high;
}

// The statistic of Kolmogorov and Smirnov, of sorted samples between 0 and 1.
double distance_from_uniform(const std::vector<Weighted>& sorted) {
  const double total = sum_of_weights(sorted);
  double passed = 0, distance = 0;
  for (const Weighted& sample : sorted) {
    distance = std::max(distance, std::abs(passed / total - sample.value));
    passed += sample.weight;
    distance = std::max(distance, std::abs(passed / total - sample.value));
  }
  return distance;
}

double standard_deviation(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / count;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / count);
}

// What a device spends on its ops in one run.
struct Work {
  double usual = 0, measured = 0, variance = 0;  // the last as modelled
};

}  // namespace

void JitterEstimate::add(const Graph& graph, const Timeline& timeline) {
  for (const Timeline::Execution& execution : timeline.executions) {
    const OpId op = execution.op;
    const Seconds time = execution.end - execution.start;
    if (time > 0) samples_[{signature(graph, op), execution.device}].push_back({runs_, time});
  }
  ++runs_;
}

std::vector<JitterEstimate::Group> JitterEstimate::groups() const {
  std::vector<Group> groups;
  std::vector<std::vector<Weighted>> ratios(runs_);
  for (const auto& [sort, samples] : samples_) {
    std::vector<Seconds> times;
    for (const Sample& sample : samples) times.push_back(sample.time);
    Group& group = groups.emplace_back(Group{&sort.first.kind, sort.second, median(std::move(times)), {}, {}});
    for (const Sample& sample : samples) {
      group.runs.push_back(sample.run);
      group.residuals.push_back(sample.time / group.usual);
      ratios[sample.run].push_back({group.residuals.back(), group.usual});
    }
  }
  // All ops of a run have their median ratio to what is usual in common.
  std::vector<double> common;
  for (std::vector<Weighted>& of_run : ratios) {
    sort_by_value(of_run);
    common.push_back(of_run.empty() ? 1 : weighted_quantile(of_run, 0.5));
  }
  for (Group& group : groups)
    for (std::size_t i = 0; i < group.runs.size(); ++i)
      group.residuals[i] = std::log(group.residuals[i] / common[group.runs[i]]);
  return groups;
}

Jitter JitterEstimate::fitted() const {
  const std::vector<Group> groups = this->groups();
  std::map<std::string, std::vector<Weighted>> kinds;
  for (const Group& group : groups)
    for (const double residual : group.residuals) kinds[*group.kind].push_back({residual, group.usual});
  double weights = 0, sum = 0;
  std::map<std::string, double> sigmas;
  for (auto& [kind, residuals] : kinds) {
    sort_by_value(residuals);
    sigmas[kind] = sigma_of(residuals);
    weights += sum_of_weights(residuals);
    sum += sum_of_weights(residuals) * sigmas[kind];
  }
  Jitter jitter = weights > 0 ? sum / weights : 0;  // of transfers too
  for (const auto& [kind, sigma] : sigmas)
    if (kinds[kind].size() >= kFewestOfKind &&
        std::max(sigma, jitter.sigma) > kOwnSigma * std::min(sigma, jitter.sigma))
      jitter.kinds.push_back({kind, sigma});

  double beyond = 0, lost = 0;  // the usual time of the ops of the tail, and what they took in addition
  for (const Group& group : groups)
    for (const double residual : group.residuals)
      if (residual > std::max(kBeyond * jitter.of_kind(*group.kind), kLeastBeyond)) {
        beyond += group.usual;
        lost += group.usual * (std::exp(residual) - 1);
      }
  if (beyond > 0)
    jitter.tail = {std::min(beyond / weights, kMostTailProbability), std::min(1 + lost / beyond, kMostTailFactor)};
  return jitter;
}

CalibrationResult::Fit JitterEstimate::fit(const Jitter& jitter) const {
  CalibrationResult::Fit fit;
  std::vector<Weighted> residuals, shares;  // shares: how much of the model lies below each residual
  std::map<double, double> weight_of_sigma;
  std::map<std::pair<std::uint32_t, DeviceId>, Work> work;  // by run and device
  for (const Group& group : groups()) {
    const double sigma = jitter.of_kind(*group.kind);
    for (std::size_t i = 0; i < group.residuals.size(); ++i) {
      residuals.push_back({group.residuals[i], group.usual});
      shares.push_back({modelled_share(jitter.tail, sigma, group.residuals[i]), group.usual});
      Work& of_device = work[{group.runs[i], group.device}];
      of_device.usual += group.usual;
      of_device.measured += group.usual * std::exp(group.residuals[i]);
      of_device.variance += group.usual * group.usual * modelled_variance(jitter.tail, sigma);
    }
    weight_of_sigma[sigma] += group.usual * static_cast<double>(group.residuals.size());
  }
  fit.samples = residuals.size();
  if (residuals.empty()) return fit;
  sort_by_value(residuals);
  sort_by_value(shares);
  fit.distance = distance_from_uniform(shares);
  for (const double share : {0.05, 0.5, 0.95, 0.99})
    fit.quantiles.push_back({share, std::exp(weighted_quantile(residuals, share)),
                             std::exp(modelled_quantile(jitter.tail, weight_of_sigma, share))});
  std::vector<double> works;
  for (const auto& [device, of_device] : work) {
    works.push_back(of_device.measured / of_device.usual);
    fit.work_modelled += std::sqrt(of_device.variance) / of_device.usual / static_cast<double>(work.size());
  }
  fit.work_measured = standard_deviation(works);
  return fit;
}

}  // namespace doppler
