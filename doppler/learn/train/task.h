#pragma once

#include <memory>
#include <string>
#include <vector>

#include "doppler/learn/policy.h"
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
  const Objective& objective() const { return *objective_; }
  // The problem as the policy sees it; made when a policy first asks, and again if another one does.
  const std::shared_ptr<const EncodedProblem>& encoded(const Policy& policy);
  Seconds bound() const { return bound_; }
  std::uint64_t evaluations() const { return evaluations_; }
  // Adds evaluations that somebody else made for it.
  void count(std::uint64_t evaluations) { evaluations_ += evaluations; }
  // A hash of graph, costs, machine and rules: it is equal if what was found before still holds.
  const std::string& fingerprint();

  // Evaluates a placement and keeps it if it is one of the best and fits in memory. Of an episode only the devices
  // count, and its order as priorities where the discipline reads them. `finder` says who found it: one of the three
  // below, or the name of a method.
  Seconds evaluate(const Episode& episode);
  Seconds evaluate(const Placement& placement, std::string_view finder);
  static constexpr std::string_view kPolicy = "policy", kSearch = "expert iteration", kClassical = "classical methods";

  // The best placement so far, which fits in memory, and its makespan; infinity if there is none.
  const Placement& best() const { return best_; }
  const std::string& finder() const { return finder_; }  // Who found it.
  Seconds best_makespan() const { return elites_.empty() ? Costs::kNever : elites_.front().makespan; }
  // At most kElites, in ascending order of makespans that all differ.
  const std::vector<Elite>& elites() const { return elites_; }
  static constexpr std::size_t kElites = 4;

  // Takes up what a checkpoint holds.
  void restore(Placement best, std::string finder, std::vector<Elite> elites, std::uint64_t evaluations);

  // A number per device: those with the same number can be exchanged without changing the problem.
  std::span<const std::uint32_t> interchangeable();
  bool has_equal_devices();

 private:
  bool worth_keeping(Seconds makespan) const;
  void keep(const Placement& placement, Seconds makespan, std::string_view finder);

  std::string name_;
  std::unique_ptr<Objective> objective_;
  std::shared_ptr<const EncodedProblem> encoded_;  // Null until it is asked for.
  std::string encoded_for_;                        // The architecture that can read it.
  Seconds bound_;
  bool ranked_;  // The discipline reads priorities.
  std::uint64_t evaluations_ = 0;
  std::string fingerprint_;  // Empty until somebody asks.
  Placement current_, best_;
  std::string finder_;
  std::vector<std::uint32_t> interchangeable_;  // Empty until somebody asks.
  std::vector<Elite> elites_;
};

// Makes a task. The lower bound is computed if it is asked for, which takes longer than a few updates, and if it holds
// for the objective. Without an objective it is the usual one of the problem.
std::unique_ptr<Task> make_task(std::string name, std::unique_ptr<Objective> objective, bool bounded);
std::unique_ptr<Task> make_task(std::string name, const Problem& problem, bool bounded);

}  // namespace doppler
