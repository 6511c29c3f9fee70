#pragma once

#include <vector>

#include "doppler/learn/doppler/rollout.h"

namespace doppler {

// An episode in which one policy takes the op and its device together: one softmax over all pairs of a ready op v and a
// device d where it may go, with the logit score[v] + PLC's logit of d for v. It is there to be compared with SEL and
// PLC, which decide one after the other. Of LossWeights, `plc` is the weight of its decisions.
//
// Every step looks at the devices for every op that is ready, so only the `candidates` ready ops with the largest
// b-levels are looked at; which those are does not depend on the parameters, so the gradient is exact. An op that
// follow() is told to take is a candidate even if it is not one of those.
template <typename Real>
class JointRollout final : public Rollout<Real> {
 public:
  JointRollout(DeviceFeatureSet set, const HeadShape& shape, std::size_t candidates, bool keeps_activations);

  void act(const Embedding<Real>& embedding, const Real* head, Deciding deciding, Rng& rng) override;
  void follow(const Embedding<Real>& embedding, const Real* head, std::span<const OpId> order,
              std::span<const DeviceId> device_of_op) override;
  void imitate(const Embedding<Real>& embedding, const Real* head, TeacherRule teacher, Rng& rng) override;
  void backward(const Real* head, const LossWeights& weights, Embedding<Real>& gradient, Real* head_gradient) override;

 private:
  // A row of the step at hand: the candidate's place among candidates_, and a device.
  struct Pair {
    std::size_t candidate;
    DeviceId device;
  };

  void start(const Embedding<Real>& embedding);
  void join(OpId op) override;
  double look_at_pairs(const Embedding<Real>& embedding, const Real* head, const OpId* wanted,
                       const TeacherRule* teacher);
  Pair choose(Deciding deciding, Rng& rng) const;
  void label_pairs();
  void take(Pair pair, const Embedding<Real>& embedding);
  void make_room(std::size_t rows);
  std::size_t first_row() const { return this->keeps_ ? first_[this->step_] * this->devices_ : 0; }
  std::size_t candidate_count() const { return candidates_.size() - first_[this->step_]; }

  const std::size_t most_;
  std::vector<OpId> waiting_;          // The ready ops, by b-level: the largest last.
  std::vector<OpId> candidates_;       // Those of all steps, one step after the other.
  std::vector<std::size_t> first_;     // Per step: its first candidate.
  std::vector<double> pair_logit_;     // Of the step at hand.
  std::vector<char> allowed_, label_;  // Of the step at hand: may it go there, would the teacher do it.
};

}  // namespace doppler
