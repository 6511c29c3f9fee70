#include "doppler/sim/measured_objective.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/base/statistics.h"
#include "doppler/sim/simulator.h"

namespace doppler {

MeasuredObjective::MeasuredObjective(std::shared_ptr<Executor> executor, const Problem& problem,
                                     MeasuredObjectiveOptions options)
    : MeasuredObjective(std::make_shared<Shared>(std::move(executor), problem), problem, options) {}

MeasuredObjective::MeasuredObjective(std::shared_ptr<Shared> shared, const Problem& problem,
                                     MeasuredObjectiveOptions options)
    : Objective(problem), shared_(std::move(shared)), options_(options), ranked_(problem.rules().read_priorities()) {
  DOPPLER_CHECK(options.repeats > 0 && options.max_slowdown >= 1, "{} repeats, max slowdown {}", options.repeats,
                options.max_slowdown);
}

std::unique_ptr<Objective> MeasuredObjective::another() const {
  return std::unique_ptr<Objective>(new MeasuredObjective(shared_, problem(), options_));
}

Seconds MeasuredObjective::incumbent_time() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->incumbent_time;
}
std::uint64_t MeasuredObjective::runs() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->runs;
}
std::uint64_t MeasuredObjective::reused() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->reused;
}
std::uint64_t MeasuredObjective::refused() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->refused;
}
const TimeRatios* MeasuredObjective::ratios() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->observed ? &shared_->ratios : nullptr;
}
void MeasuredObjective::on_run(std::function<void(std::uint64_t key, Seconds time)> keep) {
  const std::lock_guard lock(shared_->mutex);
  shared_->on_run = std::move(keep);
}

std::uint64_t MeasuredObjective::key(const Placement& placement) const {
  std::uint64_t hash = placement.device_of_op.size();
  for (const DeviceId device : placement.device_of_op) hash = mix(hash, device);
  if (ranked_)
    for (const std::uint32_t rank : placement.priority) hash = mix(hash, rank);
  return hash;
}

void MeasuredObjective::recall(std::uint64_t key, Seconds time) {
  const std::lock_guard lock(shared_->mutex);
  shared_->times[key].push_back(time);
  ++shared_->runs;
}

Seconds MeasuredObjective::run(const Placement& placement) {
  const std::lock_guard lock(shared_->mutex);
  const Timeline timeline = shared_->executor->run(placement);
  const Seconds time = timeline.makespan;
  if (!timeline.executions.empty()) {  // Some systems say only how long a run took.
    shared_->ratios.observe(timeline);
    shared_->observed = true;
  }
  const std::uint64_t name = key(placement);
  recall(name, time);
  if (shared_->on_run) shared_->on_run(name, time);
  return time;
}

void MeasuredObjective::set_incumbent(const Placement& placement) {
  const std::lock_guard lock(shared_->mutex);
  std::vector<Seconds>& times = shared_->times[key(placement)];
  while (times.size() < options_.repeats) run(placement);
  shared_->incumbent_time = median(times);
  shared_->incumbent_prediction = exact_simulator().makespan(placement);
}

bool MeasuredObjective::would_refuse(const Placement& placement) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->times.contains(key(placement))) return false;
  return exact_simulator().makespan(placement) > options_.max_slowdown * shared_->incumbent_prediction ||
         !fits_in_memory(placement);
}

Seconds MeasuredObjective::measure(const Placement& placement) {
  const std::lock_guard lock(shared_->mutex);
  const std::uint64_t name = key(placement);
  const auto known = shared_->times.find(name);
  const std::size_t before = known == shared_->times.end() ? 0 : known->second.size();
  const auto enough = [&] {
    const auto found = shared_->times.find(name);
    if (found == shared_->times.end()) return false;
    const std::vector<Seconds>& times = found->second;
    return times.size() >= options_.repeats ||
           *std::min_element(times.begin(), times.end()) > options_.max_slowdown * shared_->incumbent_time;
  };
  while (!enough()) run(placement);
  const std::vector<Seconds>& times = shared_->times.at(name);
  if (times.size() == before) ++shared_->reused;
  return median(times);
}

Seconds MeasuredObjective::value(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority) {
  const std::lock_guard lock(shared_->mutex);
  const Placement placement{{device_of_op.begin(), device_of_op.end()}, {priority.begin(), priority.end()}, {}};
  DOPPLER_CHECK(shared_->incumbent_time > 0, "evaluation before there is an incumbent");
  try {
    if (!would_refuse(placement)) return measure(placement);
  } catch (const InfeasibleError&) {
    // The system disagrees with the simulator about memory.
  }
  ++shared_->refused;
  return exact_simulator().makespan(placement) * shared_->incumbent_time / shared_->incumbent_prediction;
}

}  // namespace doppler
