#include "doppler/learn/train/trained_policy.h"

#include "doppler/learn/train/trainer.h"
#include "doppler/learn/train/zero_shot.h"
#include "doppler/place/cheap_methods.h"
#include "doppler/place/list/simple_placements.h"

namespace doppler {
namespace {

// A trained policy is specialised more gently than a new one is trained.
constexpr double kRate = 1e-3, kLastRate = 1e-4;
constexpr std::uint64_t kTriesOfCheapMethods = 5;  // of methods that would try many seeds

}  // namespace

TrainedPolicy::TrainedPolicy(const std::string& where, PolicyFile file, const TrainedPolicyOptions& options)
    : where_(where), file_(std::move(file)), options_(options), name_(policy_from(where_, file_)->name()) {}

void TrainedPolicy::check(const Problem& problem) const {
  const auto policy = policy_from(where_, file_);
  policy->check_placeable(problem.graph().title(), problem);
  if (options_.train > 0) policy->check_trainable(problem.graph().title(), problem);
}

Proposal TrainedPolicy::zero_shot(const Problem& problem, Objective& objective, const MethodOptions& options) const {
  const auto policy = policy_from(where_, file_);
  return doppler::zero_shot(*policy, problem, objective, options_.samples, options);
}

Proposal TrainedPolicy::answer(const Problem& problem, Objective& objective, const MethodOptions& options) const {
  Proposal first = zero_shot(problem, objective, options);
  if (options_.train <= 0) return first;
  const auto policy = policy_from(where_, file_);
  TrainingOptions training;
  training.stages = {Stage::simulation};
  training.time = options_.train;
  if (!options_.fresh) {
    training.rate = kRate;
    training.last_rate = kLastRate;
  }
  training.seed = options.seed;
  training.stop = options.budget.stop();
  Trainer trainer(*policy, training);
  Task& task = trainer.add(std::make_unique<Task>(problem.graph().title(), objective.another(), options.known_bound));
  task.evaluate(first.placement, Task::kPolicy);
  // Search and imitation begin with what the cheap methods find, unless the answer is to be the policy's own.
  if (!options_.alone) {
    MethodOptions cheap = options;
    cheap.budget = options.budget.at_most(kTriesOfCheapMethods);
    ask(cheap_methods(), problem, objective, cheap,
        [&](std::string_view name, const Proposal& found) { task.evaluate(found.placement, name); });
  }
  while (!reaches(task.best_makespan(), options.known_bound) && trainer.advance()) {
    if (options.on_progress) options.on_progress({name_, task.best_makespan(), task.evaluations()});
  }
  if (task.elites().empty()) return first;
  Proposal proposal;
  proposal.placement = task.best();
  if (task.finder() != Task::kPolicy) proposal.winner = task.finder();
  proposal.placement.cause_of_op.resize(problem.op_count());
  for (OpId op = 0; op < problem.op_count(); ++op)
    proposal.placement.cause_of_op[op] = cause_of(problem, op, Cause::policy);
  proposal.evaluations = first.evaluations + task.evaluations();
  return proposal;
}

}  // namespace doppler
