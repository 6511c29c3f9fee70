#pragma once

#include <memory>
#include <optional>

#include "doppler/learn/train/learner.h"
#include "doppler/sim/measured_objective.h"

namespace doppler {

struct SystemStageOptions {
  std::uint64_t runs = 400;  // Runs of the system, all in all; a final that is interrupted is run again as a whole.
  MeasuredObjectiveOptions measuring;
  double rate = 3e-4;                         // The rate is gentle: there are few updates, and their times vary.
  double entropy = 1e-3;                      // The weight of the entropy.
  std::size_t batch = 8;                      // Episodes per update.
  std::uint64_t search_evaluations = 20'000;  // Evaluations by the corrected simulator, per update.
  LearnerOptions learner;                     // Everything else that a learner wants to know; its batch plays no part.
  std::uint64_t seed = 0;
};

// How stage III ended.
struct SystemVerdict {
  Placement placement;        // The winner.
  bool changed = false;       // The winner is another than the placement of stage II.
  Seconds before = 0;         // The median of the placement of stage II in the final.
  Seconds after = 0;          // The median of the fastest of the others; 0 if there was none.
  double p = 1;               // The p-value of the test between them.
  std::size_t finalists = 0;  // The number of the others.
};

// Stage III: the policy is fine-tuned on the real system.
//
// First the elites of stage II, the classical methods and the policy's own answer are measured; then REINFORCE goes on
// as long as there are runs. What was measured corrects the simulator (TimeRatios). Every update measures the best that
// the corrected simulator knows, which becomes an elite if it is good, and the first two of the policy's samples that
// may be faster by it than the fastest known; the other samples count with what it predicts. A placement is run again
// only if it is promising (MeasuredObjective). A fifth of the runs are kept for a
// final: the three fastest placements and that of stage II are run again in turn, and the one of the least median wins
// if a one-sided Mann-Whitney test says so, with p < 0.05 divided by the number of rivals (Bonferroni). Otherwise the
// placement of stage II stays.
class SystemStage {
 public:
  // `policy` and `simulated` must outlive it. `simulated` has what stage II found, if anything.
  SystemStage(Policy& policy, Task& simulated, std::shared_ptr<Executor> executor, const SystemStageOptions& options);

  bool finished() const { return verdict_.has_value(); }
  // One update; the first measures what is known already, the last holds the final. `rng` is of its own for every step.
  UpdateReport step(Rng rng);

  std::uint64_t steps() const { return steps_; }
  double done() const;
  std::uint64_t episodes() const;
  Task& task() { return task_; }
  const Task& task() const { return task_; }
  MeasuredObjective& objective() { return objective_; }
  const MeasuredObjective& objective() const { return objective_; }
  Learner& learner() { return learner_; }
  const Learner& learner() const { return learner_; }
  const std::optional<SystemVerdict>& verdict() const { return verdict_; }
  const SystemStageOptions& options() const { return options_; }

  // Takes up what a checkpoint holds: `runs` were used when it was written. The task is restored by itself, the
  // measurements by the objective's recall().
  void restore(std::uint64_t steps, std::uint64_t runs, std::optional<SystemVerdict> verdict);

  static constexpr std::uint64_t kFewestRuns = 60;

 private:
  SystemStage(Policy& policy, Task& simulated, const SystemStageOptions& options,
              std::unique_ptr<MeasuredObjective> objective);
  void measure_starts(std::uint64_t seed);
  void ask_corrected_simulator(std::uint64_t seed);
  void hold_final();
  std::uint64_t final_rounds() const;

  Policy& policy_;
  Task& simulated_;
  const SystemStageOptions options_;
  MeasuredObjective& objective_;  // It belongs to the task.
  Task task_;
  Learner learner_;
  std::uint64_t steps_ = 0;
  std::optional<SystemVerdict> verdict_;
};

}  // namespace doppler
