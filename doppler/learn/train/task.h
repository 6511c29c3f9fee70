#pragma once

#include <memory>
#include <string>
#include <vector>

#include "doppler/learn/doppler/policy_input.h"
#include "doppler/objective.h"

namespace doppler {

// A placement worth imitating: the devices, and the order in which the ops start in the simulator.
struct Elite {
  Seconds makespan = 0;
  std::vector<OpId> order;
  std::vector<DeviceId> device_of_op;
};

// One problem, what its placements are judged by, and the best that was found for it.
class Task {
 public:
  // `bound`: a proven lower bound on the objective, 0 if unknown.
  Task(std::string name, std::unique_ptr<Objective> objective, Seconds bound = 0);

  const std::string& name() const { return name_; }
  const Problem& problem() const { return objective_->problem(); }
  Objective& objective() { return *objective_; }
  const PolicyInput& input() const { return input_; }
  Seconds bound() const { return bound_; }
  std::uint64_t evaluations() const { return evaluations_; }
  // Evaluations that somebody else made for it.
  void count(std::uint64_t evaluations) { evaluations_ += evaluations; }
  // Of graph, costs, machine and rules: equal if what was found before still holds.
  const std::string& fingerprint();

  // Evaluates a placement (devices, and the order as priorities where the discipline reads them) and keeps it if it is
  // one of the best and fits in memory.
  Seconds evaluate(std::span<const DeviceId> device_of_op, std::span<const OpId> order);
  Seconds evaluate(const Placement& placement);

  // The best so far; feasible. Infinity: none.
  const Placement& best() const { return best_; }
  Seconds best_makespan() const { return elites_.empty() ? Costs::kNever : elites_.front().makespan; }
  // Ascending, with different makespans, at most kElites.
  const std::vector<Elite>& elites() const { return elites_; }
  static constexpr std::size_t kElites = 4;

  // From a checkpoint.
  void restore(Placement best, std::vector<Elite> elites, std::uint64_t evaluations);

 private:
  bool worth_keeping(Seconds makespan) const;
  void keep(const Placement& placement, Seconds makespan);

  std::string name_;
  std::unique_ptr<Objective> objective_;
  PolicyInput input_;
  Seconds bound_;
  bool ranked_;  // the discipline reads priorities
  std::uint64_t evaluations_ = 0;
  std::string fingerprint_;  // empty: nobody asked yet
  Placement current_, best_;
  std::vector<Elite> elites_;
};

// A task by exact makespans. The lower bound is computed if asked for: it takes longer than a few updates.
std::unique_ptr<Task> make_task(std::string name, const Problem& problem, bool bounded);

}  // namespace doppler
