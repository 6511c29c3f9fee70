#include "doppler/objective.h"

#include <numeric>

#include "doppler/base/rng.h"
#include "doppler/sim/ordered_evaluator.h"
#include "doppler/sim/simulator.h"

namespace doppler {
namespace {

// Tables take about a hundred bytes per op and edge; beyond a gigabyte the draws take turns in one table.
constexpr std::size_t kMostTableRows = 10'000'000;

Problem without_ties(const Problem& problem) {
  Rules rules = problem.rules();
  rules.ties = Ties::by_id;  // times that vary do not tie
  return problem.with(rules);
}

}  // namespace

Objective::Objective(Problem problem) : problem_(std::move(problem)) {}
Objective::~Objective() = default;

std::unique_ptr<OrderedEvaluator> Objective::ordered() const { return nullptr; }

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

ExpectedObjective::ExpectedObjective(const Problem& problem, double jitter, std::size_t draws)
    : Objective(problem),
      jitter_(jitter),
      draws_(jitter > 0 ? draws : 1),
      drawn_(jitter > 0 ? without_ties(problem) : problem) {
  const std::size_t rows = std::size_t{problem.op_count()} + problem.graph().edge_count();
  if (draws_ > 1 && rows * draws_ > kMostTableRows) return;
  for (std::size_t draw = 0; draw < draws_; ++draw)
    simulators_.emplace_back(drawn_, JitterDraw{jitter_, mix(problem.rules().seed, draw)});
}
ExpectedObjective::~ExpectedObjective() = default;

std::unique_ptr<Objective> ExpectedObjective::another() const {
  return std::make_unique<ExpectedObjective>(problem(), jitter_, draws_);
}

template <typename Visit>
void ExpectedObjective::for_each_draw(Visit visit) {
  for (Simulator& simulator : simulators_) visit(simulator);
  if (!simulators_.empty()) return;
  for (std::size_t draw = 0; draw < draws_; ++draw) {
    Simulator simulator(drawn_, JitterDraw{jitter_, mix(problem().rules().seed, draw)});
    visit(simulator);
  }
}

Seconds ExpectedObjective::value(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority) {
  Seconds sum = 0;
  for_each_draw([&](Simulator& simulator) { sum += simulator.makespan(device_of_op, priority); });
  return sum / static_cast<double>(draws_);
}

std::vector<Seconds> ExpectedObjective::values(std::span<const Placement> placements) {
  std::vector<Seconds> sums(placements.size(), 0.0);
  for_each_draw([&](Simulator& simulator) {
    for (std::size_t i = 0; i < placements.size(); ++i) sums[i] += simulator.makespan(placements[i]);
  });
  for (Seconds& sum : sums) sum /= static_cast<double>(draws_);
  return sums;
}

std::vector<Seconds> ExpectedObjective::makespans(const Placement& placement) {
  std::vector<Seconds> result;
  for_each_draw(
      [&](Simulator& simulator) { result.push_back(simulator.makespan(placement.device_of_op, placement.priority)); });
  return result;
}

}  // namespace doppler
