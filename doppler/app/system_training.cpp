#include "doppler/app/system_training.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/bounds.h"

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
      executor_(make_executor(loaded_, system.executor, options)) {
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

}  // namespace doppler
