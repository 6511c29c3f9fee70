#pragma once

#include <string_view>
#include <vector>

#include "doppler/learn/nn/adam.h"
#include "doppler/learn/policy.h"
#include "doppler/learn/train/task.h"

namespace doppler {

struct LearnerOptions {
  std::size_t batch = 0;          // Episodes per update; 0: as many as the policy likes.
  double largest_advantage = 3;   // In standard deviations.
  double largest_gradient = 0.5;  // The norm that a gradient is clipped to.
  double self_imitation = -1;     // The weight of one elite per update against the batch; below 0: the policy's own.
  double clip = 0.2;              // For policies that learn several times from an episode: see EpisodeLoss.
};

// How often a part of the policy agreed with its teacher.
struct Agreement {
  std::string_view part;
  double share = 0;
};

struct UpdateReport {
  Seconds mean = 0, best = 0;        // The makespans of the batch; 0 if it was imitation.
  double entropy = 0;                // The mean over the ops.
  std::vector<Agreement> agreement;  // Imitation of a rule: one for every part of the policy; otherwise empty.
  double log_probability = 0;        // Imitation: of what the teacher does, per op.
  double gradient_norm = 0;
};

// The update rules, each on one problem and with one step of the optimiser. The policy looks at the problem once for
// the whole batch. An update that an exception ends, such as OutOfTime of the policy, leaves policy and optimiser as
// they were.
class Learner {
 public:
  // `policy` must outlive it.
  Learner(Policy& policy, const LearnerOptions& options);

  // Stage I: imitation of a rule on the states that the learner itself visits (DAgger). The policy knows the rule.
  UpdateReport imitate(Task& task, TeacherRule teacher, double rate, Rng rng);
  // Stage I with a placement as the teacher: the task's best.
  UpdateReport follow_best(Task& task, double rate);
  // Stage II: REINFORCE with the batch's mean as baseline, and imitation of an elite. Where the policy likes several
  // epochs, PPO: each but the first is another step of the optimiser. Where episodes say their progress, what a
  // decision is credited with is the progress after it, against the mean of the batch at the same decision.
  UpdateReport reinforce(Task& task, double rate, double entropy, Rng rng);

  // Makes policy and optimiser what they were before the last update.
  void undo();

  // Returns the best placement of the last reinforce().
  Placement best_of_batch() const;

  Adam& optimiser() { return adam_; }
  const Adam& optimiser() const { return adam_; }

 private:
  class Whole;  // An update that is made as a whole or not at all.
  void follow(std::span<const OpId> order, std::span<const DeviceId> device_of_op, double weight);
  // The devices of the elite, equal devices exchanged so that it agrees with the batch on as many ops as possible.
  std::span<const DeviceId> renumbered(const Elite& elite, Task& task);
  void find_advantages(Seconds mean, double ops);
  void learn_from_batch(double entropy, double ops, bool again);
  double finish(double rate);

  Policy& policy_;
  LearnerOptions options_;
  Adam adam_, adam_before_;
  std::vector<float> parameters_before_;
  std::vector<Episode> batch_;
  Episode imitation_;
  std::vector<Seconds> makespans_;
  std::vector<double> advantages_;
  std::vector<DeviceId> renumbered_;
  std::vector<std::vector<double>> step_advantages_;  // Where episodes say their progress.
};

}  // namespace doppler
