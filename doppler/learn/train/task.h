#pragma once

#include <memory>
#include <string>
#include <vector>

#include "doppler/learn/doppler/policy_input.h"
#include "doppler/sim/oracle.h"

namespace doppler {

// A placement worth imitating: the devices, and the order in which the ops start in the simulator.
struct Elite {
  Seconds makespan = 0;
  std::vector<OpId> order;
  std::vector<DeviceId> device_of_op;
};

// One graph on one machine under some rules, with the best that was found for it. The trainer knows what it optimises
// only as an oracle.
class Task {
 public:
  // `problem` must outlive the task. `bound`: a proven lower bound, 0 if unknown.
  Task(std::string name, const Problem& problem, std::unique_ptr<Oracle> oracle, Seconds bound = 0);

  const std::string& name() const { return name_; }
  const Problem& problem() const { return *problem_; }
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
  const Problem* problem_;
  PolicyInput input_;
  std::unique_ptr<Oracle> oracle_;
  Simulator simulator_;
  Seconds bound_;
  bool ranked_;  // the discipline reads priorities
  std::uint64_t evaluations_ = 0;
  std::string fingerprint_;  // empty: nobody asked yet
  Placement current_, best_;
  std::vector<Elite> elites_;
};

// A task with everything it refers to, with the simulator as its oracle.
class OwnedTask {
 public:
  // The lower bound is computed if asked for: it takes longer than a few updates.
  OwnedTask(std::string name, Graph graph, Machine machine, const Rules& rules, bool bounded);
  OwnedTask(const OwnedTask&) = delete;
  OwnedTask& operator=(const OwnedTask&) = delete;

  Task& task() { return task_; }
  const Task& task() const { return task_; }
  const Problem& problem() const { return problem_; }

 private:
  Graph graph_;
  Machine machine_;
  Costs costs_;
  Problem problem_;
  Task task_;
};

}  // namespace doppler
