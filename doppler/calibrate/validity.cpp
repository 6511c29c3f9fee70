#include "doppler/calibrate/validity.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/statistics.h"
#include "doppler/calibrate/calibration_runs.h"
#include "doppler/objective.h"

namespace doppler {
namespace {

using Sample = Validity::Sample;

// Takes runs 0, 2, 4 … of each sample, or 1, 3, 5 …; nothing if one has no such run.
std::optional<std::vector<Seconds>> measured_in_half(const std::vector<Sample>& samples, std::size_t first) {
  std::vector<std::vector<Seconds>> half;
  for (const Sample& sample : samples) {
    std::vector<Seconds>& times = half.emplace_back();
    for (std::size_t i = first; i < sample.times.size(); i += 2) times.push_back(sample.times[i]);
    if (times.empty()) return std::nullopt;
  }
  return steady_medians(half);
}

// Compares one half of the runs with the other; twice as many runs agree better, as Spearman and Brown say (1910).
std::optional<double> repeatability(const std::vector<Sample>& samples) {
  const auto even = measured_in_half(samples, 0), odd = measured_in_half(samples, 1);
  if (!even || !odd) return std::nullopt;
  const double halves = std::max(0.0, spearman(*even, *odd));
  return 2 * halves / (1 + halves);
}

// Runs the placements in rounds, and with them those that calibrate. An interruption ends it.
void run_rounds(Executor& executor, const ValidityOptions& options, std::vector<TimedPlacement>& placements,
                Calibration& calibration) {
  constexpr unsigned kCalibrationPlacements = 12;
  Rng rng(options.seed);
  std::vector<TimedPlacement> others;
  if (options.calibrate) others = calibration_placements(executor.problem(), kCalibrationPlacements, options.seed);
  try {
    for (unsigned round = 0; round < options.warmup + options.repeat; ++round) {
      const bool counts = round >= options.warmup;
      run_round(others, rng, [&](const TimedPlacement& timed) {
        const Timeline timeline = executor.run(timed.placement);
        if (counts) calibration.add(executor.problem(), timed.placement, timeline);
      });
      run_round(placements, rng, [&](TimedPlacement& timed) {
        const Seconds time = executor.time(timed.placement);
        if (counts) timed.times.push_back(time);
      });
      if (options.on_round) options.on_round(round);
    }
  } catch (const RunCancelled&) {
  }
}

}  // namespace

Validity judge_validity(std::string graph, std::vector<Sample> samples) {
  Validity result{std::move(graph), std::move(samples)};
  std::vector<double> simulated, measured, medians;
  for (const Sample& sample : result.samples) {
    simulated.push_back(sample.simulated);
    measured.push_back(sample.measured);
    medians.push_back(median(sample.times));
    const double relative = sample.simulated / sample.measured - 1;
    result.mean_error += std::abs(relative) / static_cast<double>(result.samples.size());
    result.bias += relative / static_cast<double>(result.samples.size());
  }
  result.pearson = pearson(simulated, measured);
  result.spearman = spearman(simulated, measured);
  result.pearson_of_medians = pearson(simulated, medians);
  result.spearman_of_medians = spearman(simulated, medians);
  result.repeatability = repeatability(result.samples);
  return result;
}

Validity measure_validity(std::string graph, Executor& executor, std::vector<VariedPlacement> placements,
                          const ValidityOptions& options) {
  const Problem& problem = executor.problem();
  std::vector<TimedPlacement> timed;
  for (const VariedPlacement& varied : placements) timed.push_back({varied.placement});
  Calibration calibration(problem.machine(), !executor.limits().computes);
  run_rounds(executor, options, timed, calibration);
  std::vector<std::vector<Seconds>> times;
  std::vector<std::size_t> ran;
  for (std::size_t i = 0; i < timed.size(); ++i) {
    if (!timed[i].fits || timed[i].times.empty()) continue;
    ran.push_back(i);
    times.push_back(timed[i].times);
  }
  if (ran.size() < 2 || (options.calibrate && calibration.empty())) return {std::move(graph), {}};
  const std::vector<Seconds> measured = steady_medians(times);
  ExpectedObjective expected(options.calibrate ? problem.on(calibration.machine("calibrated")) : problem);
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < ran.size(); ++i)
    samples.push_back({std::move(placements[ran[i]].origin), expected.value(timed[ran[i]].placement), measured[i],
                       std::move(times[i])});
  return judge_validity(std::move(graph), std::move(samples));
}

}  // namespace doppler
