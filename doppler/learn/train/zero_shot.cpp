#include "doppler/learn/train/zero_shot.h"

#include "doppler/learn/doppler/step_rollout.h"
#include "doppler/place/list/simple_placements.h"
#include "doppler/place/search/incumbent.h"

namespace doppler {

Proposal zero_shot(Network<float>& network, const Problem& problem, Objective& objective, std::uint32_t samples,
                   const MethodOptions& options) {
  const PolicyInput input(problem);
  Embedding<float> embedding;
  if (!network.per_step()) network.embed(input, {}, embedding);
  const auto rollout = make_rollout(network, false);
  rollout->bind(input);
  Rng rng(options.seed);
  std::vector<Cause> causes(problem.op_count());
  for (OpId op = 0; op < problem.op_count(); ++op) causes[op] = cause_of(problem, op, Cause::policy);
  Incumbent best("doppler", objective, options);
  for (std::uint32_t i = 0; i <= samples && !best.exhausted(); ++i) {
    rollout->act(embedding, network.head(), i == 0 ? Deciding::greedy : Deciding::sampled, rng);
    Placement placement;
    placement.cause_of_op = causes;
    placement.device_of_op.assign(rollout->device_of_op().begin(), rollout->device_of_op().end());
    placement.priority.resize(problem.op_count());
    for (std::uint32_t rank = 0; rank < problem.op_count(); ++rank) placement.priority[rollout->order()[rank]] = rank;
    best.consider(std::move(placement));
  }
  return std::move(best).finish();
}

}  // namespace doppler
