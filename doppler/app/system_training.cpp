#include "doppler/app/system_training.h"

#include "doppler/base/error.h"
#include "doppler/bounds/bounds.h"
#include "doppler/report/summary.h"

namespace doppler {

void add_system_flags(CLI::App& verb, SystemOptions& options) {
  add_executor_flags(verb, options.executor);
  verb.add_option("--runs", options.runs, "Stage system: how many times the graph may be run for real")
      ->check(whole_number())
      ->capture_default_str();
  verb.add_option("--max-slowdown", options.max_slowdown,
                  "Stage system: nothing is run that is predicted to take so many times as long as the best known")
      ->check(CLI::Range(1.0, 1000.0))
      ->capture_default_str();
}

SystemTraining::SystemTraining(const std::string& path, const Options& options, const SystemOptions& system)
    : options_(system),
      seed_(options.seed),
      loaded_(load(path, options, Purpose::execution)),
      executor_(make_executor(loaded_, system.executor, options.seed)) {
  if (system.runs < SystemStage::kFewestRuns)
    throw InputError(fmt::format("--runs: found {}; required at least {}", system.runs, SystemStage::kFewestRuns));
}

std::unique_ptr<Task> SystemTraining::make_task(std::string name) const {
  return doppler::make_task(std::move(name), loaded_.problem, true);
}

void SystemTraining::join(Trainer& trainer, const LearnerOptions& learner) {
  SystemStageOptions stage;
  stage.runs = options_.runs;
  stage.measuring.max_slowdown = options_.max_slowdown;
  stage.learner = learner;
  stage.seed = seed_;
  trainer.use_system(executor_, stage);
}

std::string describe_system(const SystemStage& stage, bool unitless) {
  const MeasuredObjective& objective = stage.objective();
  std::string text = fmt::format("system       {} runs; {} evaluations reused them, {} were too slow by prediction\n",
                                 objective.runs(), objective.reused(), objective.refused());
  if (!stage.finished()) return text;
  const SystemVerdict& verdict = *stage.verdict();
  if (verdict.finalists == 0)
    return text + fmt::format("measured     {} as after stage II; nothing else was worth a run\n",
                              format_time(verdict.before, unitless));
  return text + fmt::format("measured     {} after stage II, {} the best other ({:+.1f} %, p {:.2g}): {}\n",
                            format_time(verdict.before, unitless), format_time(verdict.after, unitless),
                            100 * (verdict.after / verdict.before - 1), verdict.p,
                            verdict.changed ? "changed" : "kept as it was");
}

}  // namespace doppler
