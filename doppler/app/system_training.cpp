#include "doppler/app/system_training.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/bounds/bounds.h"
#include "doppler/report/summary.h"

namespace doppler {

void add_system_flags(CLI::App& verb, SystemOptions& options) {
  add_rig_flags(verb, options.rig);
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
      study_(path, options),
      rig_(study_, system.rig, options.seed),
      oracle_(rig_.engine()) {
  if (system.runs < SystemStage::kFewestRuns)
    throw InputError(fmt::format("--runs: found {}; required at least {}", system.runs, SystemStage::kFewestRuns));
}

std::unique_ptr<Task> SystemTraining::make_task(std::string name) const {
  return std::make_unique<Task>(std::move(name), study_.problem(), std::make_unique<SimulatorOracle>(study_.problem()),
                                lower_bound(study_.problem()).value);
}

void SystemTraining::join(Trainer& trainer, const LearnerOptions& learner) {
  SystemStageOptions stage;
  stage.runs = options_.runs;
  stage.oracle.max_slowdown = options_.max_slowdown;
  stage.learner = learner;
  stage.seed = seed_;
  trainer.use_system(oracle_, stage);
}

std::string describe_system(const SystemStage& stage, bool unitless) {
  const MeasuredOracle& oracle = stage.oracle();
  std::string text = fmt::format("system       {} runs; {} evaluations reused them, {} were too slow by prediction\n",
                                 oracle.runs(), oracle.reused(), oracle.refused());
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
