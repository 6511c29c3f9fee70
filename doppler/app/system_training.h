#pragma once

#include <memory>
#include <string>

#include "doppler/app/flags/executor.h"
#include "doppler/app/training_run.h"
#include "doppler/learn/train/trainer.h"

namespace CLI {
class App;
}  // namespace CLI

namespace doppler {

// The flags of stage III.
struct SystemOptions {
  ExecutorFlags executor;
  std::uint64_t runs = 400;
  double max_slowdown = 1.2;
};
void add_system_flags(CLI::App& verb, SystemOptions& options);

// The system that stage III runs placements on: one graph and its executor.
class SystemTraining {
 public:
  // `options` has the machine. Throws InputError if the graph cannot be run as asked.
  SystemTraining(const std::string& path, const Options& options, const SystemOptions& system);

  // Returns the graph's task, for the stages before too.
  std::unique_ptr<Task> make_task(std::string name) const;
  // Lets the trainer run placements on the system.
  void join(Trainer& trainer, const LearnerOptions& learner);

 private:
  SystemOptions options_;
  std::uint64_t seed_;
  LoadedProblem loaded_;
  std::shared_ptr<Executor> executor_;
};

}  // namespace doppler
