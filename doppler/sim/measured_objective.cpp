#include "doppler/sim/measured_objective.h"

#include <algorithm>
#include <cmath>

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
std::optional<TimeRatios> MeasuredObjective::ratios() const {
  constexpr std::size_t kLeastPlacements = 6;  // more than there are devices on a small machine
  const std::lock_guard lock(shared_->mutex);
  if (shared_->observed) return shared_->ratios;
  if (shared_->entries.size() < kLeastPlacements) return std::nullopt;
  std::vector<MeasuredMakespan> measured;
  for (const Entry& entry : shared_->entries) measured.push_back({entry.placement, median(entry.times)});
  return fit_time_ratios(problem(), measured);
}
void MeasuredObjective::on_run(std::function<void(const Placement& placement, Seconds time)> keep) {
  const std::lock_guard lock(shared_->mutex);
  shared_->on_run = std::move(keep);
}

const MeasuredObjective::Entry* MeasuredObjective::find(const Placement& placement) const {
  const auto found = shared_->index.find(key(placement));
  return found == shared_->index.end() ? nullptr : &shared_->entries[found->second];
}
bool MeasuredObjective::knows(const Placement& placement) const {
  const std::lock_guard lock(shared_->mutex);
  return find(placement) != nullptr;
}

Seconds MeasuredObjective::best_time() const {
  Seconds best = Costs::kNever;
  for (const Entry& entry : shared_->entries) best = std::min(best, median(entry.times));
  return best;
}

void MeasuredObjective::predict_by(std::shared_ptr<Objective> predictor, std::uint64_t new_placements) {
  constexpr std::size_t kMostCompared = 16;  // the newest
  const std::lock_guard lock(shared_->mutex);
  shared_->predictor = std::move(predictor);
  shared_->new_placements = new_placements;
  const std::vector<Entry>& all = shared_->entries;
  Seconds best = Costs::kNever;
  std::vector<double> errors;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Seconds measured = median(all[i].times);
    if (measured >= best && i + kMostCompared < all.size()) continue;
    const double factor = measured / shared_->predictor->value(all[i].placement);
    if (measured < best) best = measured, shared_->scale = factor;
    errors.push_back(std::log(factor));
  }
  double sum = 0;
  const double middle = median(errors);
  for (const double error : errors) sum += (error - middle) * (error - middle);
  shared_->doubt = std::sqrt(sum / static_cast<double>(errors.size()));
}

Seconds MeasuredObjective::predicted(const Placement& placement) {
  if (shared_->predictor) return shared_->scale * shared_->predictor->value(placement);
  return exact_simulator().makespan(placement) * shared_->incumbent_time / shared_->incumbent_prediction;
}

std::uint64_t MeasuredObjective::key(const Placement& placement) const {
  std::uint64_t hash = placement.device_of_op.size();
  for (const DeviceId device : placement.device_of_op) hash = mix(hash, device);
  if (ranked_)
    for (const std::uint32_t rank : placement.priority) hash = mix(hash, rank);
  return hash;
}

void MeasuredObjective::recall(const Placement& placement, Seconds time) {
  const std::lock_guard lock(shared_->mutex);
  ++shared_->runs;
  if (used() <= shared_->settled)
    add(placement, time);
  else
    shared_->recalled.emplace_back(placement, time);
}

void MeasuredObjective::settle(std::uint64_t settled) {
  const std::lock_guard lock(shared_->mutex);
  shared_->settled = settled;
  const std::uint64_t known = used();
  const std::size_t count = std::min<std::size_t>(settled > known ? settled - known : 0, shared_->recalled.size());
  for (std::size_t i = 0; i < count; ++i) add(shared_->recalled[i].first, shared_->recalled[i].second);
  shared_->recalled.erase(shared_->recalled.begin(), shared_->recalled.begin() + static_cast<std::ptrdiff_t>(count));
}

std::uint64_t MeasuredObjective::used() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->runs - shared_->recalled.size();
}

void MeasuredObjective::add(const Placement& placement, Seconds time) {
  const auto [found, added] = shared_->index.try_emplace(key(placement), shared_->entries.size());
  if (added) shared_->entries.push_back({{placement.device_of_op, placement.priority, {}}, {}});
  shared_->entries[found->second].times.push_back(time);
}

Seconds MeasuredObjective::run(const Placement& placement) {
  const std::lock_guard lock(shared_->mutex);
  auto& recalled = shared_->recalled;
  if (!recalled.empty() && key(recalled.front().first) == key(placement)) {
    const Seconds time = recalled.front().second;
    recalled.erase(recalled.begin());
    add(placement, time);
    return time;
  }
  // Whoever asks for something else than before goes another way, and knows all that was run: so that what is known is
  // always the first runs of all, in their order.
  settle(shared_->runs);
  const Timeline timeline = shared_->executor->run(placement);
  const Seconds time = timeline.makespan;
  if (!timeline.executions.empty()) {  // Some systems say only how long a run took.
    shared_->ratios.observe(timeline);
    shared_->observed = true;
  }
  add(placement, time);
  ++shared_->runs;
  if (shared_->on_run) shared_->on_run(placement, time);
  return time;
}

void MeasuredObjective::set_incumbent(const Placement& placement) {
  const std::lock_guard lock(shared_->mutex);
  const auto enough = [&] {
    const Entry* known = find(placement);
    return known != nullptr && known->times.size() >= options_.repeats;
  };
  while (!enough()) run(placement);
  shared_->incumbent_time = median(find(placement)->times);
  shared_->incumbent_prediction = exact_simulator().makespan(placement);
}

bool MeasuredObjective::would_refuse(const Placement& placement) {
  const std::lock_guard lock(shared_->mutex);
  if (knows(placement)) return false;
  return predicted(placement) > options_.max_slowdown * shared_->incumbent_time || !fits_in_memory(placement);
}

Seconds MeasuredObjective::measure(const Placement& placement) {
  const std::lock_guard lock(shared_->mutex);
  const Entry* known = find(placement);
  const std::size_t before = known == nullptr ? 0 : known->times.size();
  const Seconds promising = kPromising * best_time();
  const auto enough = [&] {
    const Entry* entry = find(placement);
    if (entry == nullptr) return false;
    return entry->times.size() >= options_.repeats ||
           *std::min_element(entry->times.begin(), entry->times.end()) > promising;
  };
  while (!enough()) run(placement);
  const std::vector<Seconds>& times = find(placement)->times;
  if (times.size() == before) ++shared_->reused;
  return median(times);
}

Seconds MeasuredObjective::value(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority) {
  const std::lock_guard lock(shared_->mutex);
  const Placement placement{{device_of_op.begin(), device_of_op.end()}, {priority.begin(), priority.end()}, {}};
  DOPPLER_CHECK(shared_->incumbent_time > 0, "evaluation before there is an incumbent");
  const bool fresh = !knows(placement);
  if (shared_->predictor && fresh) {
    const Seconds best = best_time(), expected = predicted(placement);
    const bool may_be_faster = expected * std::exp(-shared_->doubt) < best && shared_->new_placements > 0;
    if (!may_be_faster) {
      ++shared_->refused;
      return std::max(expected, best);  // what was not run is not the best
    }
    --shared_->new_placements;
  }
  try {
    if (!would_refuse(placement)) return measure(placement);
  } catch (const InfeasibleError&) {
    // The system disagrees with the simulator about memory.
  }
  ++shared_->refused;
  return std::max(predicted(placement), best_time());  // What was not run is not the best.
}

}  // namespace doppler
