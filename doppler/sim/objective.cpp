#include "doppler/objective.h"

#include <cmath>

#include "doppler/base/error.h"
#include "doppler/base/statistics.h"
#include "doppler/sim/jitter_sample.h"
#include "doppler/sim/ordered_evaluator.h"
#include "doppler/sim/sampled_evaluator.h"
#include "doppler/sim/simulator.h"

namespace doppler {
namespace {

constexpr std::size_t kMostRowsToExpect = 60'000;  // ops and edges: beyond, a search has time for few values

bool may_be_sampled(const Problem& problem, const Jitter& jitter) {
  return jitter.varies() && JitterSample::keeps_tables(problem, SampledEvaluator::kDraws);
}

constexpr std::size_t kQuantileDraws = 63;

// Null where the tables of the draws are too large to keep: then there are no changes that are judged quickly.
std::unique_ptr<SampledEvaluator> sampled_evaluator(const Problem& problem, const Jitter& jitter) {
  if (!may_be_sampled(problem, jitter)) return nullptr;
  return std::make_unique<SampledEvaluator>(problem, jitter);
}

}  // namespace

Objective::Objective(Problem problem) : problem_(std::move(problem)) {}
Objective::~Objective() = default;

std::unique_ptr<OrderedEvaluator> Objective::ordered() const { return nullptr; }
std::unique_ptr<Objective> Objective::redrawn(Draws) const { return nullptr; }
std::unique_ptr<SampledEvaluator> Objective::sampled() const { return nullptr; }

Simulator& Objective::exact_simulator() {
  if (!simulator_) simulator_ = std::make_unique<Simulator>(problem_);
  return *simulator_;
}
Timeline Objective::simulate(const Placement& placement, const Budget& budget) {
  return exact_simulator().simulate(placement, budget);
}
bool Objective::fits_in_memory(const Placement& placement, const Budget& budget) {
  return !problem_.memory_limited() || exact_simulator().fits_in_memory(placement, budget);
}
void Objective::critical_chain(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority,
                               std::vector<OpId>& chain) {
  exact_simulator().critical_chain(device_of_op, priority, chain);
}

ExactObjective::ExactObjective(Problem problem) : Objective(std::move(problem)), simulator_(exact_simulator()) {}
Seconds ExactObjective::value(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority) {
  return simulator_.makespan(device_of_op, priority);
}
std::unique_ptr<OrderedEvaluator> ExactObjective::ordered() const {
  return OrderedEvaluator::supports(problem()) ? std::make_unique<OrderedEvaluator>(problem()) : nullptr;
}

ExpectedObjective::ExpectedObjective(const Problem& problem, const Jitter& jitter, Draws draws)
    : Objective(problem), sample_(std::make_unique<JitterSample>(problem, jitter, draws.count, draws.stream)) {}
ExpectedObjective::~ExpectedObjective() = default;

std::unique_ptr<Objective> ExpectedObjective::another() const { return redrawn({sample_->draws(), sample_->stream()}); }
std::unique_ptr<Objective> ExpectedObjective::redrawn(Draws draws) const {
  return std::make_unique<ExpectedObjective>(problem(), sample_->jitter(), draws);
}
std::unique_ptr<SampledEvaluator> ExpectedObjective::sampled() const {
  return sampled_evaluator(problem(), sample_->jitter());
}

Seconds ExpectedObjective::value(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority) {
  Seconds sum = 0;
  sample_->for_each([&](Simulator& simulator) { sum += simulator.makespan(device_of_op, priority); });
  return sum / static_cast<double>(sample_->draws());
}

std::vector<Seconds> ExpectedObjective::values(std::span<const Placement> placements) {
  std::vector<Seconds> sums(placements.size(), 0.0);
  sample_->for_each([&](Simulator& simulator) {
    for (std::size_t i = 0; i < placements.size(); ++i) sums[i] += simulator.makespan(placements[i]);
  });
  for (Seconds& sum : sums) sum /= static_cast<double>(sample_->draws());
  return sums;
}

std::vector<Seconds> ExpectedObjective::makespans(const Placement& placement) {
  std::vector<Seconds> result;
  sample_->for_each([&](Simulator& simulator) { result.push_back(simulator.makespan(placement)); });
  return result;
}

bool ExpectedObjective::drawn() const { return may_be_sampled(problem(), sample_->jitter()); }

QuantileObjective::QuantileObjective(const Problem& problem, Draws draws)
    : Objective(problem),
      sample_(std::make_unique<JitterSample>(problem, problem.machine().jitter(), draws.count, draws.stream)) {}
QuantileObjective::~QuantileObjective() = default;

std::unique_ptr<Objective> QuantileObjective::another() const { return redrawn({sample_->draws(), sample_->stream()}); }
std::unique_ptr<Objective> QuantileObjective::redrawn(Draws draws) const {
  return std::make_unique<QuantileObjective>(problem(), draws);
}
std::unique_ptr<SampledEvaluator> QuantileObjective::sampled() const {
  return sampled_evaluator(problem(), sample_->jitter());
}
bool QuantileObjective::drawn() const { return may_be_sampled(problem(), sample_->jitter()); }
Seconds QuantileObjective::value(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority) {
  std::vector<Seconds> makespans;
  sample_->for_each([&](Simulator& simulator) { makespans.push_back(simulator.makespan(device_of_op, priority)); });
  return quantile(std::move(makespans), kQuantile);
}

Expectation expectation_of(const Problem& problem, const Placement& placement, std::size_t draws) {
  const std::vector<Seconds> makespans = ExpectedObjective(problem, Draws{draws}).makespans(placement);
  const auto count = static_cast<double>(makespans.size());
  Expectation result;
  for (const Seconds makespan : makespans) result.mean += makespan;
  result.mean /= count;
  double squares = 0;
  for (const Seconds makespan : makespans) squares += (makespan - result.mean) * (makespan - result.mean);
  if (count > 1) result.error = std::sqrt(squares / (count - 1) / count);
  result.p95 = quantile(makespans, QuantileObjective::kQuantile);
  return result;
}

std::unique_ptr<Objective> make_objective(std::string_view name, const Problem& problem) {
  if (name == "exact") return std::make_unique<ExactObjective>(problem);
  if (name != "expected" && name != "p95")
    throw InputError(fmt::format("objective: found '{}'; required exact, expected or p95", name));
  if (!problem.machine().jitter().varies())
    throw InputError(fmt::format(
        "objective {}: found machine '{}' with a jitter of 0, whose times do not vary; required more than 0, "
        "by --jitter or by 'doppler calibrate', or objective exact",
        name, problem.machine().name()));
  const std::size_t rows = std::size_t{problem.op_count()} + problem.graph().edge_count();
  if (name == "p95" && rows > kMostRowsToExpect)
    throw InputError(
        fmt::format("objective p95: found {} ops and edges; required at most {}, because one value takes "
                    "{} simulations",
                    rows, kMostRowsToExpect, kQuantileDraws));
  if (name == "expected")
    return std::make_unique<ExpectedObjective>(problem, Draws{SampledEvaluator::kDraws, Draws::searched});
  return std::make_unique<QuantileObjective>(problem, Draws{kQuantileDraws, Draws::searched});
}

std::unique_ptr<Objective> usual_objective(const Problem& problem) {
  const std::size_t rows = std::size_t{problem.op_count()} + problem.graph().edge_count();
  const bool expected = problem.machine().jitter().varies() && rows <= kMostRowsToExpect;
  return make_objective(expected ? "expected" : "exact", problem);
}

}  // namespace doppler
