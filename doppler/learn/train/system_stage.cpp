#include "doppler/learn/train/system_stage.h"

#include <algorithm>
#include <memory>

#include "doppler/base/error.h"
#include "doppler/base/statistics.h"
#include "doppler/learn/train/zero_shot.h"
#include "doppler/place/cheap_methods.h"
#include "doppler/place/search/search_as_measured.h"

namespace doppler {
namespace {

constexpr std::size_t kFinalists = 3;         // They meet the placement of stage II in the final.
constexpr double kFinalShare = 0.2;           // The final's share of the runs.
constexpr double kSignificance = 0.05;        // The final's largest p-value, before it is divided by the rivals.
constexpr std::uint64_t kRunsPerStep = 4;     // A policy that has settled needs no runs, and must end nevertheless.
constexpr std::uint32_t kPolicySamples = 16;  // Samples of the policy, where it is asked as a whole.
constexpr std::uint64_t kNewPlacements = 2;   // Samples of the policy that are run per update, at most.

LearnerOptions learner_of(const SystemStageOptions& options) {
  LearnerOptions result = options.learner;
  result.batch = options.batch;
  return result;
}

// What the cheap methods find; those that find nothing that fits in memory are left out.
std::vector<Placement> cheap_placements(Task& task, std::uint64_t seed) {
  MethodOptions options;
  options.budget = Budget::unlimited();
  options.seed = seed;
  std::vector<Placement> found;
  ask(cheap_methods(), task.problem(), task.objective(), options,
      [&](std::string_view, Proposal proposal) { found.push_back(std::move(proposal.placement)); });
  return found;
}

Placement placement_of(const Elite& elite) { return {elite.device_of_op, ranks_from_order(elite.order), {}}; }

}  // namespace

SystemStage::SystemStage(Policy& policy, Task& simulated, std::shared_ptr<Executor> executor,
                         const SystemStageOptions& options)
    : SystemStage(policy, simulated, options,
                  std::make_unique<MeasuredObjective>(std::move(executor), simulated.problem(), options.measuring)) {}

SystemStage::SystemStage(Policy& policy, Task& simulated, const SystemStageOptions& options,
                         std::unique_ptr<MeasuredObjective> objective)
    : policy_(policy),
      simulated_(simulated),
      options_(options),
      objective_(*objective),
      task_(simulated.name(), std::move(objective)),
      learner_(policy, learner_of(options)) {
  DOPPLER_CHECK(options.runs >= kFewestRuns, "{} runs", options.runs);
}

std::uint64_t SystemStage::final_rounds() const {
  return static_cast<std::uint64_t>(kFinalShare * static_cast<double>(options_.runs)) / (kFinalists + 1);
}

double SystemStage::done() const {
  if (finished()) return 1;
  return std::min(1.0, std::max(static_cast<double>(objective_.used()) / static_cast<double>(options_.runs),
                                static_cast<double>(steps_ * kRunsPerStep) / static_cast<double>(options_.runs)));
}

std::uint64_t SystemStage::episodes() const {
  const std::uint64_t others = (steps_ > 0 ? 1U : 0U) + (finished() ? 1U : 0U);  // The starts and the final.
  return (steps_ - others) * options_.batch;
}

UpdateReport SystemStage::step(Rng rng) {
  DOPPLER_CHECK(!finished(), "a step after the final");
  UpdateReport report;
  if (steps_ == 0) {
    measure_starts(rng.bits());
  } else {
    objective_.set_incumbent(simulated_.best());  // A process that has just resumed does not know it yet.
    const std::uint64_t kept = final_rounds() * (kFinalists + 1);
    const std::uint64_t needed = (options_.batch + 1) * options_.measuring.repeats;  // Should nothing be predicted.
    if (objective_.used() + needed + kept <= options_.runs && steps_ * kRunsPerStep < options_.runs) {
      ask_corrected_simulator(rng.bits());
      report = learner_.reinforce(task_, options_.rate, options_.entropy, rng);
    } else {
      hold_final();
    }
  }
  ++steps_;
  return report;
}

void SystemStage::measure_starts(std::uint64_t seed) {
  // Into the simulated task first, so that its best is the placement of stage II even if there was no stage II.
  const std::vector<Placement> cheap = cheap_placements(simulated_, options_.seed);
  for (const Placement& placement : cheap) simulated_.evaluate(placement, Task::kClassical);
  MethodOptions options;
  options.budget = Budget::unlimited();
  options.seed = options_.seed;
  try {
    simulated_.evaluate(
        zero_shot(policy_, simulated_.problem(), simulated_.objective(), kPolicySamples, options).placement,
        Task::kPolicy);
  } catch (const InfeasibleError&) {
    // Whether anything fits is asked next.
  }
  if (simulated_.elites().empty())
    throw InfeasibleError(fmt::format("{}: found no placement that fits in memory to start from", simulated_.name()));
  objective_.set_incumbent(simulated_.best());
  task_.evaluate(simulated_.best(), Task::kClassical);
  // The runs of the incumbent correct the simulator where they left timelines; of the other starts only those are then
  // run that may be faster.
  ask_corrected_simulator(seed);
  std::vector<Placement> starts;
  for (const Elite& elite : simulated_.elites()) starts.push_back(placement_of(elite));
  starts.insert(starts.end(), cheap.begin(), cheap.end());
  for (const Placement& start : starts)
    if (!objective_.would_refuse(start)) task_.evaluate(start, Task::kClassical);
}

// Expert iteration with an expert that knows what the devices were measured to take; the policy learns from the elites.
void SystemStage::ask_corrected_simulator(std::uint64_t seed) {
  const std::optional<TimeRatios> ratios = objective_.ratios();
  if (!ratios) return;
  MethodOptions options;
  options.budget = Budget::for_evaluations(options_.search_evaluations);
  options.seed = seed;
  const Advice advice = [this](const Problem& problem, Objective& objective, const MethodOptions& how) {
    return zero_shot(policy_, problem, objective, kPolicySamples, how);
  };
  const Suggestion found = search_as_measured(*ratios, task_.problem(), {task_.best()}, advice, options);
  if (found.predicted < found.before) try {
      objective_.measure(found.placement);
      task_.evaluate(found.placement, Task::kSearch);
    } catch (const InfeasibleError&) {
      // The system disagrees with the simulator about memory.
    }
  objective_.predict_by(corrected_objective(*ratios, task_.problem()), kNewPlacements);
}

void SystemStage::hold_final() {
  std::vector<Placement> field = {simulated_.best()};
  const auto enter = [&](Placement placement) {
    const auto same = [&](const Placement& other) { return objective_.key(other) == objective_.key(placement); };
    if (field.size() > kFinalists || std::any_of(field.begin(), field.end(), same)) return;
    if (objective_.knows(placement)) field.push_back(std::move(placement));
  };
  enter(task_.best());
  for (const Elite& elite : task_.elites()) enter(placement_of(elite));
  std::vector<std::vector<Seconds>> times(field.size());
  for (std::uint64_t round = 0; round < final_rounds(); ++round)
    for (std::size_t i = 0; i < field.size(); ++i) times[i].push_back(objective_.run(field[i]));
  SystemVerdict verdict;
  verdict.before = median(times[0]);
  verdict.finalists = field.size() - 1;
  std::size_t best = 0;
  for (std::size_t i = 1; i < field.size(); ++i)
    if (best == 0 || median(times[i]) < median(times[best])) best = i;
  if (best > 0) {
    verdict.after = median(times[best]);
    verdict.p = probability_not_smaller(times[best], times[0]);
    verdict.changed = verdict.p < kSignificance / static_cast<double>(verdict.finalists);
  }
  verdict.placement = verdict.changed ? field[best] : field[0];
  verdict_ = std::move(verdict);
}

void SystemStage::restore(std::uint64_t steps, std::uint64_t runs, std::optional<SystemVerdict> verdict) {
  steps_ = steps;
  objective_.settle(runs);
  verdict_ = std::move(verdict);
}

}  // namespace doppler
