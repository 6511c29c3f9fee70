#include "doppler/sim/measured_oracle.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/base/statistics.h"

namespace doppler {

MeasuredOracle::MeasuredOracle(Oracle& system, const Problem& problem, MeasuredOracleOptions options)
    : system_(system),
      options_(options),
      simulator_(problem),
      ratios_(problem),
      ranked_(problem.rules().read_priorities()) {
  DOPPLER_CHECK(options.repeats > 0 && options.max_slowdown >= 1, "{} repeats, max slowdown {}", options.repeats,
                options.max_slowdown);
}

std::uint64_t MeasuredOracle::key(const Placement& placement) const {
  std::uint64_t hash = placement.device_of_op.size();
  for (const DeviceId device : placement.device_of_op) hash = mix(hash, device);
  if (ranked_)
    for (const std::uint32_t rank : placement.priority) hash = mix(hash, rank);
  return hash;
}

void MeasuredOracle::recall(std::uint64_t key, Seconds time) {
  times_[key].push_back(time);
  ++runs_;
}

Seconds MeasuredOracle::run(const Placement& placement) {
  const Seconds time = system_.evaluate(placement);
  if (const auto timeline = system_.timeline()) {
    ratios_.observe(*timeline);
    observed_ = true;
  }
  const std::uint64_t name = key(placement);
  recall(name, time);
  if (on_run) on_run(name, time);
  return time;
}

void MeasuredOracle::set_incumbent(const Placement& placement) {
  std::vector<Seconds>& times = times_[key(placement)];
  while (times.size() < options_.repeats) run(placement);
  incumbent_time_ = median(times);
  incumbent_prediction_ = simulator_.makespan(placement);
}

bool MeasuredOracle::would_refuse(const Placement& placement) {
  if (times_.contains(key(placement))) return false;
  return simulator_.makespan(placement) > options_.max_slowdown * incumbent_prediction_ ||
         !simulator_.fits_in_memory(placement);
}

Seconds MeasuredOracle::measure(const Placement& placement) {
  const std::uint64_t name = key(placement);
  const auto known = times_.find(name);
  const std::size_t before = known == times_.end() ? 0 : known->second.size();
  const auto enough = [&] {
    const auto found = times_.find(name);
    if (found == times_.end()) return false;
    const std::vector<Seconds>& times = found->second;
    return times.size() >= options_.repeats ||
           *std::min_element(times.begin(), times.end()) > options_.max_slowdown * incumbent_time_;
  };
  while (!enough()) run(placement);
  const std::vector<Seconds>& times = times_.at(name);
  if (times.size() == before) ++reused_;
  return median(times);
}

Seconds MeasuredOracle::evaluate(const Placement& placement) {
  DOPPLER_CHECK(incumbent_time_ > 0, "evaluation before there is an incumbent");
  try {
    if (!would_refuse(placement)) return measure(placement);
  } catch (const InfeasibleError&) {
    // The system disagrees with the simulator about memory.
  }
  ++refused_;
  return simulator_.makespan(placement) * incumbent_time_ / incumbent_prediction_;
}

}  // namespace doppler
