#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "doppler/budget.h"
#include "doppler/problem.h"
#include "doppler/timeline.h"

namespace doppler {

class OrderedEvaluator;
class Simulator;

// What a placement is worth, in seconds; less is better. It is all that searches and learners know about time: none of
// them asks the simulator itself. Not thread-safe: every thread takes another().
//
// To add an objective, derive from it and implement value() and another(); no search needs to know.
//
//   ExactObjective objective(problem);
//   const Seconds makespan = objective.value(placement);
class Objective {
 public:
  explicit Objective(Problem problem);
  virtual ~Objective();

  virtual std::string_view name() const = 0;
  // `priority` is empty where the rules read none. Allocates nothing where it is a simulation.
  virtual Seconds value(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority) = 0;
  Seconds value(const Placement& placement) { return value(placement.device_of_op, placement.priority); }
  // The same objective with a state of its own, for another thread.
  virtual std::unique_ptr<Objective> another() const = 0;

  // Whether the value is the makespan of exact times: only then does lower_bound() hold for it, and are values of
  // integer times integers.
  virtual bool exact() const { return false; }
  // Evaluates small changes of strictly ordered placements much faster; null where the objective has no such way.
  virtual std::unique_ptr<OrderedEvaluator> ordered() const;

  const Problem& problem() const { return problem_; }

  // What a run looks like when all times are exact, whatever the objective is: searches ask for the order of the ops,
  // for memory, and for the chain of ops that explains the makespan, last op first. The first two throw OutOfTime.
  Timeline simulate(const Placement& placement, const Budget& budget = Budget::unlimited());
  bool fits_in_memory(const Placement& placement, const Budget& budget = Budget::unlimited());
  void critical_chain(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority,
                      std::vector<OpId>& chain);

 protected:
  Simulator& exact_simulator();  // made when it is first asked for

 private:
  Problem problem_;
  std::unique_ptr<Simulator> simulator_;
};

// The simulator's makespan.
class ExactObjective final : public Objective {
 public:
  explicit ExactObjective(Problem problem);
  std::string_view name() const override { return "exact"; }
  Seconds value(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority) override;
  using Objective::value;
  std::unique_ptr<Objective> another() const override { return std::make_unique<ExactObjective>(problem()); }
  bool exact() const override { return true; }
  std::unique_ptr<OrderedEvaluator> ordered() const override;

 private:
  Simulator& simulator_;
};

// The mean makespan over draws of the machine's jitter. The draws follow from the rules' seed and are the same for all
// placements, so that two values can be compared. Two devices that wait for one another wait for the slower one, hence
// this is more than the exact makespan, by little if a placement leaves some slack. Without jitter it is the exact one.
class ExpectedObjective final : public Objective {
 public:
  static constexpr std::size_t kDraws = 31;
  // Times vary by the machine's own jitter, or by another.
  explicit ExpectedObjective(const Problem& problem) : ExpectedObjective(problem, problem.machine().jitter()) {}
  ExpectedObjective(const Problem& problem, double jitter, std::size_t draws = kDraws);
  ~ExpectedObjective() override;

  std::string_view name() const override { return "expected"; }
  Seconds value(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority) override;
  using Objective::value;
  std::unique_ptr<Objective> another() const override;

  // The values of several placements. Where the tables of all draws would be too large to keep, this is much faster
  // than one value after the other.
  std::vector<Seconds> values(std::span<const Placement> placements);
  // The makespan of each draw, in the order of the draws.
  std::vector<Seconds> makespans(const Placement& placement);

 private:
  template <typename Visit>
  void for_each_draw(Visit visit);

  double jitter_;
  std::size_t draws_;
  Problem drawn_;
  std::vector<Simulator> simulators_;  // one per draw, or a single one for all where tables of all would be too large
};

}  // namespace doppler
