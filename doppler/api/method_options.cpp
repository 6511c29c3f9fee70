#include "doppler/api/method_options.h"

#include <utility>

namespace doppler {

Budget budget_of(const PlaceOptions& options) {
  const Budget budget =
      options.evaluations ? Budget::for_evaluations(*options.evaluations) : Budget::for_time(options.time);
  return budget.until(options.stop);
}

MethodOptions method_options(const PlaceOptions& options, const Budget& budget,
                             std::shared_ptr<const LearnedPolicy> policy) {
  MethodOptions result;
  result.budget = budget;
  result.seed = options.seed;
  result.threads = options.threads;
  result.published = options.published;
  result.policy = std::move(policy);
  result.on_progress = options.on_progress;
  return result;
}

}  // namespace doppler
