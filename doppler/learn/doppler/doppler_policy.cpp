#include "doppler/learn/doppler/doppler_policy.h"

#include "doppler/learn/train/trainer.h"
#include "doppler/learn/train/zero_shot.h"
#include "doppler/place/list/simple_placements.h"
#include "doppler/place/memory.h"

// The file becomes part of the program, so that it is there wherever the program is.
asm(R"(
  .section .rodata
  .balign 16
doppler_shipped_policy:
  .incbin ")" DOPPLER_SHIPPED_POLICY R"("
doppler_shipped_policy_end:
  .previous
)");
extern const char shipped_begin[] asm("doppler_shipped_policy");
extern const char shipped_end[] asm("doppler_shipped_policy_end");

namespace doppler {
namespace {

// A trained policy is specialised more gently than a new one is trained.
constexpr double kRate = 1e-3, kLastRate = 1e-4;

}  // namespace

PolicyFile shipped_policy() {
  return parse_policy("models/doppler.policy", std::string_view(shipped_begin, shipped_end));
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
