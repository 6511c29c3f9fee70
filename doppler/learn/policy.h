#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doppler/base/rng.h"
#include "doppler/budget.h"
#include "doppler/problem.h"

namespace doppler {

// A problem as a policy sees it: features, adjacency, whatever takes time and follows from the problem alone. It keeps
// the parts of the problem that it needs. Only a policy of the architecture that made it can read it.
class EncodedProblem {
 public:
  virtual ~EncodedProblem() = default;
};

// Who decides in an episode.
enum class Deciding : std::uint8_t {
  sampled,  // The policy decides by lot.
  greedy,   // The policy takes what it thinks most probable.
};

// A rule that says what it would do in any state of an episode. It may be indifferent between several decisions: the
// target is then the set of them, and the loss is −log Σ p over the set.
enum class TeacherRule : std::uint8_t {
  critical_path,  // The largest b-level with transfers goes first, where it starts earliest.
  heft,           // The same op goes first, where it finishes earliest.
};

// How much each part of the loss of one episode counts:
//   decisions · Σ −log p(target) − entropy · Σ H, summed over all decisions of the episode.
// REINFORCE has the advantage as the weight of the decisions, imitation a positive number.
struct EpisodeLoss {
  double decisions = 0, entropy = 0;
  // Added to the weight of each decision, in the order in which they were made, where the episode says its progress.
  std::span<const double> steps = {};
  // After replay(): the probability of a decision over what it was then counts instead of its logarithm, as long as it
  // is within 1 ± clip or would come back (PPO).
  double clip = 0;
};

// One placement that a policy built, and what it thought of it. Its memory is used again by the next episode, so that
// whoever keeps one allocates nothing after the first.
struct Episode {
  explicit Episode(bool with_gradient = true) : differentiable(with_gradient) {}

  bool differentiable;  // Otherwise the episode is cheaper, but has no log-probability and no backward pass.
  std::vector<DeviceId> device_of_op;
  std::vector<OpId> order;     // The ops by priority, first first; empty if the policy decides on devices alone.
  double log_probability = 0;  // The sum over the targets, and log Σ p where a target is a set.
  double entropy = 0;          // The mean over the ops.
  // The makespan after each decision and before the first, where the policy improves a placement step by step.
  std::vector<Seconds> progress;
  std::vector<double> agreement;  // Imitation: per part of the policy, how often its favourite was the teacher's.

  Placement placement() const;

  // What the policy keeps of the episode, for backward() and for the next one.
  class Trace {
   public:
    virtual ~Trace() = default;
  };
  std::unique_ptr<Trace> trace;
};

// A learned way to build placements. Parameters and gradients are flat, so that the optimiser and the checkpoint need
// not know what they mean; their number does not depend on the problem.
//
// One update of the parameters:
//   policy.begin(encoded);                           // once per problem and version of the parameters
//   for (Episode& episode : batch) policy.act(episode, Deciding::sampled, rng);
//   for (Episode& episode : batch) policy.backward(episode, {advantage, entropy});
//   policy.finish();                                 // gradients() are complete, and added to what was there
// A policy has one problem at a time; its episodes are of that problem until the next begin().
class Policy {
 public:
  virtual ~Policy() = default;

  // The name of the policy, which is that of its method, and what its numbers mean: enough to make it again
  // (policy_table.h).
  virtual std::string_view name() const = 0;
  virtual std::string architecture() const = 0;

  // Looks at the clock for everything below that takes long; nothing is limited at first (PolicyLimit). Where time is
  // up OutOfTime is thrown: gradients() are then to be cleared, and everything starts again from begin().
  Watch& watch() const { return watch_; }

  virtual std::span<float> parameters() = 0;
  virtual std::span<const float> parameters() const = 0;
  virtual std::span<float> gradients() = 0;

  // Throws InputError, beginning with `where`, if the problem is too large for any episode.
  virtual void check_placeable(const std::string&, const Problem&) const {}
  // Throws InputError, beginning with `where`, if a batch of episodes on the problem would not fit in memory.
  virtual void check_trainable(const std::string& where, const Problem& problem) const = 0;
  virtual std::shared_ptr<const EncodedProblem> encode(const Problem& problem) const = 0;

  // Looks at the problem with the parameters as they are. What backward() gathered before is dropped.
  virtual void begin(std::shared_ptr<const EncodedProblem> problem) = 0;
  // Decides by itself; the targets are what was decided.
  virtual void act(Episode& episode, Deciding deciding, Rng& rng) = 0;
  // Says how sharp the decisions by lot of episodes without gradient are: probabilities are taken to this power and
  // normalised, so that more than 1 samples nearer to what is most probable. Policies that cannot do not listen.
  virtual void sharpen(double /*power*/) {}
  // Takes the given decisions, which are the targets. `order` is topological; `device_of_op` may be anything.
  virtual void follow(Episode& episode, std::span<const OpId> order, std::span<const DeviceId> device_of_op) = 0;
  // Decides by lot, but the targets are what the teacher would have done in the states met (DAgger). Only where the
  // policy knows the teacher.
  virtual bool knows(TeacherRule teacher) const = 0;
  virtual void imitate(Episode& episode, TeacherRule teacher, Rng& rng) = 0;

  // Takes the decisions of an episode of an earlier begin() once more, with the parameters as they are now, and
  // remembers how probable they were then. Only where epochs() is more than 1.
  virtual void replay(Episode& episode);

  // Gathers the gradient of the episode's loss. Once per episode: it uses up the trace.
  virtual void backward(Episode& episode, const EpisodeLoss& loss) = 0;
  // Adds what was gathered since begin() to gradients().
  virtual void finish() = 0;

  // How it is best trained: the episodes of an update, and how often each is learned from.
  virtual std::size_t batch() const { return 16; }
  virtual std::size_t epochs() const { return 1; }

  // The weight of imitating one of the best placements so far, against a batch, where some devices of the problem are
  // equal and where none are.
  virtual double self_imitation(bool /*equal_devices*/) const { return 0.1; }
  // True if it knows devices by their numbers, so that equal devices are not equal to it: a placement to imitate is
  // better given to it with the numbers that it would use itself.
  virtual bool numbers_devices() const { return false; }

  // Ops that it thinks belong together, as of the last begin(): a search may move them as one. Most policies think of
  // ops one by one.
  virtual std::vector<std::vector<OpId>> blocks() const { return {}; }

  // The kinds of decisions that it makes, for reports: Episode::agreement has a number for each.
  virtual std::span<const std::string_view> parts() const = 0;
  // What can be left out for ablations: parts that are not to learn from decisions, inputs that it is not to see.
  virtual std::span<const std::string_view> optional_parts() const = 0;
  // Throws InputError unless it is one of them.
  virtual void leave_out(std::string_view part) = 0;
  virtual std::span<const std::string_view> left_out() const = 0;

 private:
  mutable Watch watch_{Budget::unlimited()};
};

// Limits the time of a policy for as long as it lives.
class PolicyLimit {
 public:
  PolicyLimit(const Policy& policy, const Budget& budget) : policy_(policy), before_(policy.watch()) {
    policy.watch() = Watch(budget);
  }
  ~PolicyLimit() { policy_.watch() = before_; }
  PolicyLimit(const PolicyLimit&) = delete;
  PolicyLimit& operator=(const PolicyLimit&) = delete;

 private:
  const Policy& policy_;
  const Watch before_;
};

}  // namespace doppler
