#include "doppler/calibrate/jitter.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/statistics.h"
#include "doppler/machine.h"

namespace doppler {

void JitterEstimate::add(const Graph& graph, const Timeline& timeline) {
  for (const Timeline::Execution& execution : timeline.executions) {
    const OpId op = execution.op;
    const Seconds time = execution.end - execution.start;
    if (time > 0) samples_[{signature(graph, op), execution.device}].push_back({runs_, time});
  }
  ++runs_;
}

double JitterEstimate::sigma() const {
  // All ops of a run have their median ratio to what is usual in common.
  std::vector<std::vector<double>> ratios(runs_);
  std::vector<Seconds> usual;  // in the order of samples_
  for (const auto& [sort, samples] : samples_) {
    std::vector<Seconds> times;
    for (const Sample& sample : samples) times.push_back(sample.time);
    usual.push_back(median(std::move(times)));
    for (const Sample& sample : samples) ratios[sample.run].push_back(sample.time / usual.back());
  }
  std::vector<double> common;
  for (std::vector<double>& of_run : ratios) common.push_back(of_run.empty() ? 1 : median(std::move(of_run)));

  constexpr double kSigmas = 2 * 1.2816;  // of a normal distribution, between its 10 % and its 90 % quantile
  double weights = 0, sum = 0;
  auto typical = usual.begin();
  for (const auto& [sort, samples] : samples_) {
    std::vector<double> residuals;
    for (const Sample& sample : samples) residuals.push_back(std::log(sample.time / (*typical * common[sample.run])));
    const double weight = static_cast<double>(samples.size()) * *typical++;
    weights += weight;
    sum += weight * (quantile(residuals, 0.9) - quantile(residuals, 0.1)) / kSigmas;
  }
  return weights > 0 ? std::min(sum / weights, kMostJitter) : 0;
}

}  // namespace doppler
