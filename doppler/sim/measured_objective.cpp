#include "doppler/sim/measured_objective.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/base/statistics.h"
#include "doppler/sim/simulator.h"

namespace doppler {

MeasuredObjective::MeasuredObjective(std::shared_ptr<Executor> executor, const Problem& problem,
                                     MeasuredObjectiveOptions options)
    : Objective(problem),
      executor_(std::move(executor)),
      options_(options),
      ratios_(problem),
      ranked_(problem.rules().read_priorities()) {
  DOPPLER_CHECK(options.repeats > 0 && options.max_slowdown >= 1, "{} repeats, max slowdown {}", options.repeats,
                options.max_slowdown);
}

std::unique_ptr<Objective> MeasuredObjective::another() const {
  return std::make_unique<MeasuredObjective>(executor_, problem(), options_);
}

std::uint64_t MeasuredObjective::key(const Placement& placement) const {
  std::uint64_t hash = placement.device_of_op.size();
  for (const DeviceId device : placement.device_of_op) hash = mix(hash, device);
  if (ranked_)
    for (const std::uint32_t rank : placement.priority) hash = mix(hash, rank);
  return hash;
}

void MeasuredObjective::recall(std::uint64_t key, Seconds time) {
  times_[key].push_back(time);
  ++runs_;
}

Seconds MeasuredObjective::run(const Placement& placement) {
  const Timeline timeline = executor_->run(placement);
  const Seconds time = timeline.makespan;
  if (!timeline.executions.empty()) {  // Some systems say only how long a run took.
    ratios_.observe(timeline);
    observed_ = true;
  }
  const std::uint64_t name = key(placement);
  recall(name, time);
  if (on_run) on_run(name, time);
  return time;
}

void MeasuredObjective::set_incumbent(const Placement& placement) {
  std::vector<Seconds>& times = times_[key(placement)];
  while (times.size() < options_.repeats) run(placement);
  incumbent_time_ = median(times);
  incumbent_prediction_ = exact_simulator().makespan(placement);
}

bool MeasuredObjective::would_refuse(const Placement& placement) {
  if (times_.contains(key(placement))) return false;
  return exact_simulator().makespan(placement) > options_.max_slowdown * incumbent_prediction_ ||
         !fits_in_memory(placement);
}

Seconds MeasuredObjective::measure(const Placement& placement) {
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

Seconds MeasuredObjective::value(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority) {
  const Placement placement{{device_of_op.begin(), device_of_op.end()}, {priority.begin(), priority.end()}, {}};
  DOPPLER_CHECK(incumbent_time_ > 0, "evaluation before there is an incumbent");
  try {
    if (!would_refuse(placement)) return measure(placement);
  } catch (const InfeasibleError&) {
    // The system disagrees with the simulator about memory.
  }
  ++refused_;
  return exact_simulator().makespan(placement) * incumbent_time_ / incumbent_prediction_;
}

}  // namespace doppler
