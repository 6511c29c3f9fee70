#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "doppler/budget.h"
#include "doppler/problem.h"
#include "doppler/timeline.h"

namespace doppler {

class JitterSample;
class OrderedEvaluator;
class SampledEvaluator;
class Simulator;

// Which outcomes of a machine's jitter are looked at. They follow from the rules' seed and the stream, and are the same
// for all placements, so that two values can be compared. Searches look at other streams than reports do, so that a
// report is no kinder to what they found than to anything else.
struct Draws {
  enum Stream : std::uint64_t {
    reported,  // what results say
    searched,  // what a search goes by
    judged,    // what judges what a search has found
    chosen,    // what chooses among the best of them
  };
  std::size_t count = 31;
  std::uint64_t stream = reported;
};

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
  // `priority` is empty where the rules read none. Allocates nothing where it is one simulation or a mean of them.
  virtual Seconds value(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority) = 0;
  Seconds value(const Placement& placement) { return value(placement.device_of_op, placement.priority); }
  // The same objective with a state of its own, for another thread.
  virtual std::unique_ptr<Objective> another() const = 0;

  // Whether the value is the makespan of exact times: only then does lower_bound() hold for it, and are values of
  // integer times integers.
  virtual bool exact() const { return false; }
  // Evaluates small changes of strictly ordered placements much faster; null where the objective has no such way.
  virtual std::unique_ptr<OrderedEvaluator> ordered() const;
  // The same objective by other draws of times that vary, and what judges small changes of a placement by few of them;
  // null where nothing is drawn. A search that has found something by some draws asks others what it is worth.
  virtual std::unique_ptr<Objective> redrawn(Draws draws) const;
  virtual std::unique_ptr<SampledEvaluator> sampled() const;
  // Whether sampled() is not null.
  virtual bool drawn() const { return false; }

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

// The mean makespan over draws of the machine's jitter. Two devices that wait for one another wait for the slower one,
// hence this is more than the exact makespan, by little if a placement leaves some slack. Without jitter it is the
// exact one.
class ExpectedObjective final : public Objective {
 public:
  // Times vary by the machine's own jitter, or by another.
  explicit ExpectedObjective(const Problem& problem, Draws draws = {})
      : ExpectedObjective(problem, problem.machine().jitter(), draws) {}
  ExpectedObjective(const Problem& problem, const Jitter& jitter, Draws draws = {});
  ~ExpectedObjective() override;

  std::string_view name() const override { return "expected"; }
  Seconds value(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority) override;
  using Objective::value;
  std::unique_ptr<Objective> another() const override;
  std::unique_ptr<Objective> redrawn(Draws draws) const override;
  std::unique_ptr<SampledEvaluator> sampled() const override;
  bool drawn() const override;

  // The values of several placements. Where the tables of all draws would be too large to keep, this is much faster
  // than one value after the other.
  std::vector<Seconds> values(std::span<const Placement> placements);
  // The makespan of each draw, in the order of the draws.
  std::vector<Seconds> makespans(const Placement& placement);

 private:
  std::unique_ptr<JitterSample> sample_;
};

// The makespan that all but one run in twenty keep: the 95 % quantile over draws of the machine's jitter.
class QuantileObjective final : public Objective {
 public:
  static constexpr double kQuantile = 0.95;
  explicit QuantileObjective(const Problem& problem, Draws draws = {.count = 63});
  ~QuantileObjective() override;

  std::string_view name() const override { return "p95"; }
  Seconds value(std::span<const DeviceId> device_of_op, std::span<const std::uint32_t> priority) override;
  using Objective::value;
  std::unique_ptr<Objective> another() const override;
  std::unique_ptr<Objective> redrawn(Draws draws) const override;
  // Its changes are judged by means: a quantile of few draws says nothing. What a search finds is judged by quantiles.
  std::unique_ptr<SampledEvaluator> sampled() const override;
  bool drawn() const override;

 private:
  std::unique_ptr<JitterSample> sample_;
};

// What is to be expected of a placement where times vary, over the draws that results are reported by.
struct Expectation {
  Seconds mean = 0, error = 0;  // the standard error of the mean
  Seconds p95 = 0;              // the 95 % quantile
};
Expectation expectation_of(const Problem& problem, const Placement& placement, std::size_t draws = Draws{}.count);

// The objective of a name: exact, expected or p95. Throws InputError if there is none, or if it is one of times that
// vary and the machine's do not.
std::unique_ptr<Objective> make_objective(std::string_view name, const Problem& problem);
// What placements are judged by unless somebody says otherwise: by what is to be expected where the machine's times
// vary, as long as the graph is small enough for that (about 20 000 ops); else by exact times.
std::unique_ptr<Objective> usual_objective(const Problem& problem);

}  // namespace doppler
