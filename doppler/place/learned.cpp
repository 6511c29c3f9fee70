#include "doppler/place/learned.h"

#include "doppler/base/error.h"
#include "doppler/place/cheap_methods.h"
#include "doppler/place/search/incumbent.h"

namespace doppler {

Proposal learned(const Problem& problem, Objective& objective, const MethodOptions& options) {
  if (options.policy == nullptr)
    throw InputError("method: no learned policy is loaded; required a checkpoint (--checkpoint)");
  const LearnedPolicy& policy = *options.policy;
  // The heuristics first: a policy may take all the time that there is.
  std::vector<std::pair<std::string_view, Proposal>> others;
  std::string why_not_others;
  if (!policy.alone())
    why_not_others = ask(quick_methods(problem), problem, objective, options,
                         [&](std::string_view name, Proposal found) { others.emplace_back(name, std::move(found)); });
  MethodOptions training = options;
  training.budget = options.budget.shifted_by(policy.training_time());
  MethodOptions silent = training;
  silent.on_progress = nullptr;
  Incumbent best(policy.name(), objective, silent);
  std::string why_not;
  try {
    Proposal answer = policy.answer(problem, objective, training);
    const std::string finder = answer.winner.empty() ? std::string(policy.name()) : answer.winner;
    best.consider(std::move(answer), finder);
  } catch (const InfeasibleError& error) {
    why_not = error.what();
  } catch (const OutOfTime&) {
    if (policy.alone()) throw;
  }
  for (auto& [name, found] : others) best.consider(std::move(found), name);
  if (why_not.empty()) why_not = why_not_others;
  if (best.empty() && why_not.empty()) throw OutOfTime();
  if (best.empty()) throw InfeasibleError(why_not);
  return std::move(best).finish();
}

}  // namespace doppler
