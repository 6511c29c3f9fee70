#pragma once

#include <memory>
#include <vector>

#include "doppler/learn/doppler/step_rollout.h"
#include "doppler/learn/nn/adam.h"
#include "doppler/learn/train/task.h"

namespace doppler {

struct LearnerOptions {
  std::size_t batch = 16;                       // rollouts per update
  double largest_advantage = 3;                 // in standard deviations
  double largest_gradient = 0.5;                // norm
  double self_imitation = 0.1;                  // weight of one elite per update against the batch
  std::vector<std::string_view> blind_to = {};  // device features that the policy is not shown, for ablations
  bool train_sel = true, train_plc = true;      // off: that policy stays as it is, for ablations
};

struct UpdateReport {
  Seconds mean = 0, best = 0;                   // of the batch; imitation: 0
  double entropy = 0;                           // per step
  double sel_agreement = 0, plc_agreement = 0;  // imitation: with the teacher
  double log_probability = 0;                   // imitation: of what the teacher does, per step
  double gradient_norm = 0;
};

// The update rules, each one graph and one optimiser step. One embedding serves the whole batch.
class Learner {
 public:
  Learner(Network<float>& network, const LearnerOptions& options);

  // Stage I: imitation of a rule on the states that the learner itself visits (DAgger).
  UpdateReport imitate(const Task& task, TeacherRule teacher, double rate, Rng rng);
  // Stage I with a placement as the teacher: the task's best.
  UpdateReport follow_best(const Task& task, double rate);
  // Stage II: REINFORCE with the batch's mean as baseline, and imitation of an elite.
  UpdateReport reinforce(Task& task, double rate, double entropy, Rng rng);

  // Of the last reinforce().
  Placement best_of_batch() const;

  Adam& optimiser() { return adam_; }
  const Adam& optimiser() const { return adam_; }

 private:
  void blind(std::span<float> numbers) const;
  void prepare(const Task& task);
  void follow(const Task& task, const Elite& elite, double weight);
  double finish(double rate);

  Network<float>& network_;
  LearnerOptions options_;
  Adam adam_;
  Embedding<float> embedding_, gradient_;
  std::vector<std::unique_ptr<Rollout<float>>> rollouts_;  // the batch, and one for imitation
  std::vector<Seconds> makespans_;
};

}  // namespace doppler
