#include "doppler/place/learned.h"

#include "doppler/base/error.h"
#include "doppler/place/cheap_methods.h"
#include "doppler/place/search/incumbent.h"

namespace doppler {

Proposal learned(const Problem& problem, Objective& objective, const MethodOptions& options) {
  if (options.policy == nullptr)
    throw InputError("method: no learned policy is loaded; required a checkpoint (--checkpoint)");
  const LearnedPolicy& policy = *options.policy;
  MethodOptions silent = options;
  silent.on_progress = nullptr;
  Incumbent best(policy.name(), objective, silent);
  std::string why_not;
  try {
    best.consider(policy.answer(problem, objective, options), policy.name());
  } catch (const InfeasibleError& error) {
    why_not = error.what();
  }
  if (!policy.alone()) {
    const std::string other =
        ask(quick_methods(), problem, objective, options,
            [&](std::string_view name, Proposal found) { best.consider(std::move(found), name); });
    if (why_not.empty()) why_not = other;
  }
  if (best.empty()) throw InfeasibleError(why_not);
  return std::move(best).finish();
}

}  // namespace doppler
