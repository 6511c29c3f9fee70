#include "doppler/learn/train/zero_shot.h"

#include "doppler/place/list/simple_placements.h"
#include "doppler/place/search/incumbent.h"

namespace doppler {

Proposal zero_shot(Policy& policy, const Problem& problem, Objective& objective, std::uint32_t samples,
                   const MethodOptions& options) {
  policy.begin(policy.encode(problem));
  Episode episode(false);
  Rng rng(options.seed);
  std::vector<Cause> causes(problem.op_count());
  for (OpId op = 0; op < problem.op_count(); ++op) causes[op] = cause_of(problem, op, Cause::policy);
  Incumbent best(policy.name(), objective, options);
  Seconds longest = 0;  // An episode cannot be interrupted, so none begins that will not end in time.
  for (std::uint32_t i = 0; i <= samples && !best.exhausted(); ++i) {
    const Seconds before = options.budget.time_left();
    if (i > 0 && longest > before) break;
    policy.act(episode, i == 0 ? Deciding::greedy : Deciding::sampled, rng);
    Placement placement = episode.placement();
    placement.cause_of_op = causes;
    best.consider(std::move(placement));
    if (options.budget.has_deadline()) longest = std::max(longest, before - options.budget.time_left());
  }
  return std::move(best).finish();
}

}  // namespace doppler
