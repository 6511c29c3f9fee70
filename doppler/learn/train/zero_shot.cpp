#include "doppler/learn/train/zero_shot.h"

#include "doppler/place/list/simple_placements.h"
#include "doppler/place/search/incumbent.h"

namespace doppler {

Proposal zero_shot(Policy& policy, const Problem& problem, Objective& objective, std::uint32_t samples,
                   const MethodOptions& options) {
  const PolicyLimit limit(policy, options.budget);
  policy.watch().step(std::uint64_t{problem.op_count()} * problem.device_count());
  policy.begin(policy.encode(problem));
  Episode episode(false);
  Rng rng(options.seed);
  std::vector<Cause> causes(problem.op_count());
  for (OpId op = 0; op < problem.op_count(); ++op) causes[op] = cause_of(problem, op, Cause::policy);
  Incumbent best(policy.name(), objective, options);
  for (std::uint32_t i = 0; i <= samples && !best.exhausted(); ++i)
    best.attempt([&] {
      policy.act(episode, i == 0 ? Deciding::greedy : Deciding::sampled, rng);
      Placement placement = episode.placement();
      placement.cause_of_op = causes;
      return placement;
    });
  return std::move(best).finish();
}

}  // namespace doppler
