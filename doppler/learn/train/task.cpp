#include "doppler/learn/train/task.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include <fmt/format.h>

#include "doppler/base/rng.h"
#include "doppler/bounds.h"
#include "doppler/bounds/relaxation.h"

namespace doppler {

Task::Task(std::string name, std::unique_ptr<Objective> objective, Seconds bound)
    : name_(std::move(name)),
      objective_(std::move(objective)),
      bound_(bound),
      ranked_(problem().rules().read_priorities()) {
  current_.device_of_op.resize(problem().op_count());
}

const std::shared_ptr<const EncodedProblem>& Task::encoded(const Policy& policy) {
  if (std::string architecture = policy.architecture(); !encoded_ || encoded_for_ != architecture) {
    encoded_ = policy.encode(problem());
    encoded_for_ = std::move(architecture);
  }
  return encoded_;
}

Seconds Task::evaluate(const Episode& episode) {
  std::copy(episode.device_of_op.begin(), episode.device_of_op.end(), current_.device_of_op.begin());
  if (ranked_) {
    current_.priority.resize(episode.order.size());
    for (std::uint32_t rank = 0; rank < episode.order.size(); ++rank) current_.priority[episode.order[rank]] = rank;
  }
  return evaluate(current_, kPolicy);
}

Seconds Task::evaluate(const Placement& placement, std::string_view finder) {
  ++evaluations_;
  const Seconds makespan = objective_->value(placement);
  if (worth_keeping(makespan)) keep(placement, makespan, finder);
  return makespan;
}

bool Task::worth_keeping(Seconds makespan) const {
  if (elites_.size() == kElites && makespan >= elites_.back().makespan) return false;
  return std::none_of(elites_.begin(), elites_.end(), [&](const Elite& elite) { return elite.makespan == makespan; });
}

void Task::keep(const Placement& placement, Seconds makespan, std::string_view finder) {
  const Timeline timeline = objective_->simulate(placement);
  if (!timeline.feasible()) return;
  Elite elite{makespan, {}, placement.device_of_op};
  // Executions are sorted by start; of two ops that start together one may be the other's input (zero costs), so the
  // topological position decides.
  std::vector<Seconds> start(problem().op_count());
  for (const Timeline::Execution& execution : timeline.executions) start[execution.op] = execution.start;
  const auto topological = problem().graph().topological_order();
  elite.order.assign(topological.begin(), topological.end());
  std::stable_sort(elite.order.begin(), elite.order.end(), [&](OpId a, OpId b) { return start[a] < start[b]; });
  const auto at = std::upper_bound(elites_.begin(), elites_.end(), makespan,
                                   [](Seconds value, const Elite& other) { return value < other.makespan; });
  if (at == elites_.begin()) {
    best_ = placement;
    best_.cause_of_op.clear();  // A checkpoint does not keep why each op is where it is.
    finder_ = finder;
  }
  elites_.insert(at, std::move(elite));
  if (elites_.size() > kElites) elites_.pop_back();
}

const std::string& Task::fingerprint() {
  if (!fingerprint_.empty()) return fingerprint_;
  const Rules& rules = problem().rules();
  std::uint64_t hash = mix(static_cast<std::uint64_t>(rules.discipline), static_cast<std::uint64_t>(rules.links));
  const auto add = [&](std::uint64_t value) { hash = mix(hash, value); };
  if (!objective_->exact())  // Values of different objectives do not compare.
    for (const char letter : objective_->name()) add(static_cast<unsigned char>(letter));
  const Graph& graph = problem().graph();
  const auto add_number = [&](double value) { add(std::bit_cast<std::uint64_t>(value)); };
  add(static_cast<std::uint64_t>(rules.ties) * 2 + (rules.bulk_synchronous ? 1 : 0));
  if (rules.discipline == Discipline::random) add(rules.seed);
  for (OpId op = 0; op < problem().op_count(); ++op) {
    for (DeviceId device = 0; device < problem().device_count(); ++device)
      add_number(problem().allows(op, device) ? problem().costs().op_time(op, device) : Costs::kNever);
    for (const TensorId tensor : graph.outputs(op))
      for (const OpId consumer : graph.consumers(tensor)) add(consumer);
  }
  for (const Seconds time : problem().costs().mean_transfers()) add_number(time);
  for (const char letter : machine_to_json(problem().machine())) add(static_cast<unsigned char>(letter));
  return fingerprint_ = fmt::format("{:016x}", hash);
}

std::unique_ptr<Task> make_task(std::string name, std::unique_ptr<Objective> objective, bool bounded) {
  const Seconds bound = bounded && objective->exact() ? lower_bound(objective->problem()).value : 0;
  return std::make_unique<Task>(std::move(name), std::move(objective), bound);
}

std::unique_ptr<Task> make_task(std::string name, const Problem& problem, bool bounded) {
  return make_task(std::move(name), usual_objective(problem), bounded);
}

std::span<const std::uint32_t> Task::interchangeable() {
  if (interchangeable_.empty()) interchangeable_ = interchangeable_devices(problem());
  return interchangeable_;
}

bool Task::has_equal_devices() {
  std::vector<std::uint32_t> kinds(interchangeable().begin(), interchangeable().end());
  std::sort(kinds.begin(), kinds.end());
  return std::adjacent_find(kinds.begin(), kinds.end()) != kinds.end();
}

void Task::restore(Placement best, std::string finder, std::vector<Elite> elites, std::uint64_t evaluations) {
  best_ = std::move(best);
  finder_ = std::move(finder);
  elites_ = std::move(elites);
  evaluations_ = evaluations;
}

}  // namespace doppler
