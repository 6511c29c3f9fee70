#include "doppler/train.h"

#include <filesystem>

#include "doppler/api/policies.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/version.h"
#include "doppler/learn/doppler/doppler_policy.h"
#include "doppler/learn/train/trainer.h"

namespace doppler {

TrainingResult train(const std::vector<NamedProblem>& problems, const std::string& path, const TrainOptions& options) {
  if (problems.empty()) throw InputError("train: no problems; required at least one");
  const std::filesystem::path parent = std::filesystem::absolute(path).parent_path();
  std::error_code ignored;
  if (!std::filesystem::is_directory(parent, ignored))  // better found before the training than after it
    throw InputError(fmt::format("{}: '{}' is no directory; required a place for the policy", path, parent.string()));
  const PolicyFile start = options.start.empty() ? shipped_policy() : read_policy(options.start);
  const std::unique_ptr<Policy> policy =
      policy_from(options.start.empty() ? "the shipped policy" : options.start, start);
  TrainingOptions training;
  training.stages = {Stage::simulation};
  training.time = options.time;
  if (options.episodes > 0) training.updates = (options.episodes + policy->batch() - 1) / policy->batch();
  training.rate = 1e-3;  // gentle, as for any policy that has learned before
  training.last_rate = 1e-4;
  training.seed = options.seed;
  training.stop = options.stop;
  Trainer trainer(*policy, training);
  for (const NamedProblem& named : problems) trainer.add(make_task(named.name, named.problem, true));
  while (trainer.advance()) {
  }

  PolicyFile file = file_of(*policy);
  file.made_by = fmt::format("doppler {} API, seed {}, {} episodes on {} tasks", version(), options.seed,
                             trainer.episodes(), problems.size());
  write_file_atomically(path, policy_to_bytes(file));
  TrainingResult result;
  result.directory = path;
  result.episodes = trainer.episodes();
  result.seconds = trainer.seconds();
  result.seed = options.seed;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const Task& task = trainer.task(i);
    TrainingResult::Task& found = result.tasks.emplace_back();
    found.graph = task.name();
    if (task.bound() > 0) found.lower_bound = task.bound();
    found.unitless = task.problem().graph().unitless();
    if (!task.elites().empty()) found.best = task.best_makespan();
  }
  return result;
}

}  // namespace doppler
