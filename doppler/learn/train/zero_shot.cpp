#include "doppler/learn/train/zero_shot.h"

#include "doppler/place/list/simple_placements.h"
#include "doppler/place/search/incumbent.h"

namespace doppler {
namespace {

// Samples as they come differ most from one another. The larger the graph, the more decisions by lot one of them holds,
// and the better are sharper ones: all kinds are tried.
constexpr double kSharpness[] = {1, 2, 4, 8};

}  // namespace

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
  for (std::uint32_t i = 0; i <= samples && !best.exhausted(); ++i) {
    policy.sharpen(kSharpness[i % std::size(kSharpness)]);
    best.attempt([&] {
      policy.act(episode, i == 0 ? Deciding::greedy : Deciding::sampled, rng);
      Placement placement = episode.placement();
      placement.cause_of_op = causes;
      return placement;
    });
  }
  policy.sharpen(1);
  return std::move(best).finish();
}

}  // namespace doppler
