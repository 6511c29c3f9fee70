#include "doppler/learn/doppler/doppler_policy.h"

#include "doppler/learn/train/trainer.h"
#include "doppler/learn/train/zero_shot.h"
#include "doppler/place/list/simple_placements.h"
#include "doppler/place/memory.h"

namespace doppler {

// The bytes of models/doppler.policy, so that the policy is wherever this library is. The build generates their source
// (cmake/embed_bytes.cmake).
extern const unsigned char kShippedPolicy[];
extern const std::size_t kShippedPolicySize;

namespace {

// A trained policy is specialised more gently than a new one is trained.
constexpr double kRate = 1e-3, kLastRate = 1e-4;

}  // namespace

PolicyFile shipped_policy() {
  const auto* const begin = reinterpret_cast<const char*>(kShippedPolicy);
  return parse_policy("models/doppler.policy", std::string_view(begin, kShippedPolicySize));
}

DopplerPolicy::DopplerPolicy(const std::string& where, PolicyFile file, const DopplerPolicyOptions& options)
    : where_(where), file_(std::move(file)), options_(options) {
  network_from(where_, file_);  // a policy that does not fit is better found now
}

Proposal DopplerPolicy::zero_shot(const Problem& problem, Objective& objective, const MethodOptions& options) const {
  const auto network = network_from(where_, file_);
  return doppler::zero_shot(*network, problem, objective, options_.samples, options);
}

Proposal DopplerPolicy::answer(const Problem& problem, Objective& objective, const MethodOptions& options) const {
  Proposal first = zero_shot(problem, objective, options);
  if (options_.train <= 0) return first;
  const auto network = network_from(where_, file_);
  TrainingOptions training;
  training.stages = {Stage::simulation};
  training.time = options_.train;
  training.rate = kRate;
  training.last_rate = kLastRate;
  training.seed = options.seed;
  training.interrupted = options.budget.interrupt_flag();
  Trainer trainer(*network, training);
  Task& task = trainer.add(std::make_unique<Task>(problem.graph().title(), objective.another(), options.known_bound));
  task.evaluate(first.placement);
  while (!trainer.finished() && !options.budget.interrupted() && !reaches(task.best_makespan(), options.known_bound)) {
    trainer.step();
    if (options.on_progress) options.on_progress({"doppler", task.best_makespan(), task.evaluations()});
  }
  if (task.elites().empty()) return first;
  Proposal proposal;
  proposal.placement = task.best();
  proposal.placement.cause_of_op.resize(problem.op_count());
  for (OpId op = 0; op < problem.op_count(); ++op)
    proposal.placement.cause_of_op[op] = cause_of(problem, op, Cause::policy);
  proposal.evaluations = first.evaluations + task.evaluations();
  return proposal;
}

}  // namespace doppler
