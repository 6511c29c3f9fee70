#include "doppler/api/method_options.h"

#include <utility>

#include "doppler/base/error.h"

namespace doppler {

void check_objective(const Problem& problem, const PlaceOptions& options) {
  if (!options.objective) return;
  const Problem& other = options.objective->problem();
  if (other.shared_graph() != problem.shared_graph() || &other.machine() != &problem.machine() ||
      other.rules() != problem.rules())
    throw InputError("objective: found one of another graph, machine or rules; required one of the problem to place");
}

std::shared_ptr<Objective> objective_of(const Problem& problem, const PlaceOptions& options) {
  if (options.objective) return options.objective;
  return options.objective_name.empty() ? usual_objective(problem) : make_objective(options.objective_name, problem);
}

Budget budget_of(const PlaceOptions& options) {
  const auto clocked = options.cpu_time ? Budget::for_processor_time : Budget::for_time;
  return (options.evaluations ? Budget::for_evaluations(*options.evaluations) : clocked(options.time))
      .until(options.stop);
}

MethodOptions method_options(const PlaceOptions& options, const Budget& budget,
                             std::shared_ptr<const LearnedPolicy> policy) {
  MethodOptions result;
  result.budget = budget;
  result.seed = options.seed;
  result.threads = options.threads;
  result.start = options.start_placement;
  result.tolerance = options.tolerance;
  result.published = options.published;
  result.policy = std::move(policy);
  result.on_progress = options.on_progress;
  return result;
}

}  // namespace doppler
