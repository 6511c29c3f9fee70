#pragma once

#include <span>
#include <vector>

#include "doppler/learn/doppler/network.h"
#include "doppler/learn/nn/precise_sum.h"
#include "doppler/learn/policy.h"

namespace doppler {

// How much each part of the loss of one episode counts:
//   sel · Σ_steps −log p(target op) + plc · Σ_steps −log p(target device) − entropy · Σ_steps (H_sel +
// H_plc)
struct LossWeights {
  double sel = 0, plc = 0, entropy = 0;
};

// One episode at a time: n steps, at each of which SEL takes a ready op and PLC a device for it. It keeps what the
// backward pass needs if it is asked to, and allocates only in bind(), and there only if the problem is larger than any
// before.
//
// SEL's logits do not change during an episode, so drawing from the softmax over the ready set is an exponential race:
// when an op becomes ready at time t it draws t + Exp(1) / exp(logit), and the smallest goes first (times are
// memoryless, so late arrivals join fairly). One heap operation per op instead of a sum over the ready set; the
// gradient needs only running sums of 1/Z for Z the sum of the weights in the ready set.
template <typename Real>
class Rollout {
 public:
  Rollout(DeviceFeatureSet set, const HeadShape& shape, bool keeps_activations);
  virtual ~Rollout() = default;

  // Says of what problem the next episodes are; it must outlive them.
  void bind(const PolicyInput& input);
  // Says what looks at the clock in episodes and backward(), which then throw OutOfTime; nothing does at first.
  void set_watch(Watch* watch) { watch_ = watch; }

  // Says how sharp decisions by lot are: probabilities are taken to this power and normalised. 1 at first, as the
  // backward pass requires.
  void set_sharpness(double sharpness) { sharpness_ = sharpness; }

  // Decides by itself; the targets are what was decided. The network's embedding and head must stay as they are until
  // after backward().
  virtual void act(const Embedding<Real>& embedding, const Real* head, Deciding deciding, Rng& rng);
  // Takes the given decisions, which are the targets. `order` must be topological, `device_of_op` may be anything.
  virtual void follow(const Embedding<Real>& embedding, const Real* head, std::span<const OpId> order,
                      std::span<const DeviceId> device_of_op);
  // Decides by lot, but the targets are what the teacher would have done in the states met.
  virtual void imitate(const Embedding<Real>& embedding, const Real* head, TeacherRule teacher, Rng& rng);

  std::span<const OpId> order() const { return order_; }
  std::span<const DeviceId> device_of_op() const { return state_.device_of_op(); }

  // Adds the gradient of the loss of the last episode to that of the embedding and of the head. Once per episode: it
  // uses up the activations.
  virtual void backward(const Real* head, const LossWeights& weights, Embedding<Real>& gradient, Real* head_gradient);

  // The mean entropy of a step of the last episode.
  double entropy() const { return (sel_entropy_ + plc_entropy_) / static_cast<double>(order_.size()); }
  // The log-probability of the targets, summed over the steps; of a set of them it is log Σ p.
  double log_probability() const { return log_probability_; }
  // What the policy thought of a device at a step, 0 where the op could not go. Only if activations are kept.
  Real probability(std::size_t step, DeviceId device) const { return probability_[step * devices_ + device]; }
  // After imitate(): the share of steps in which the policy's first choice was one of the teacher's.
  double sel_agreement() const { return sel_agreement_; }
  double plc_agreement() const { return plc_agreement_; }

 protected:
  struct Racer {
    double time;
    OpId op;
    bool operator<(const Racer& other) const {  // A heap has the smallest on top then.
      return time != other.time ? time > other.time : op > other.op;
    }
  };

  virtual void before_step() {}
  void spend(OpId op);
  void begin(const Embedding<Real>& embedding);
  virtual void join(OpId op);
  void enter_race(OpId op);
  void leave(OpId op);
  OpId next_in_race();
  void look(OpId op, const Embedding<Real>& embedding, const Real* head);
  // Leaves the logits of the observed op's devices in logit_, and what led to them in the rows from `row` on. Returns
  // the largest.
  double find_logits(OpId op, std::size_t row, const Embedding<Real>& embedding, const Real* head);
  void device_term(const float* features, const Real* head, Real* sum, Real* hidden) const;
  DeviceId decide(Deciding deciding, Rng& rng) const;
  void commit(OpId op, DeviceId device, const Embedding<Real>& embedding);
  void book_devices();
  void set_target(DeviceId device);
  void label_ops(TeacherRule teacher);
  void label_devices(TeacherRule teacher);
  void backward_devices(std::size_t step, const Real* head, const LossWeights& weights, Embedding<Real>& gradient,
                        Real* head_gradient);
  // The same for one row of it: `logit` is the gradient of its logit. input_count_ must be that of the op.
  void backward_device(std::size_t row, OpId op, DeviceId device, double logit, const Real* head,
                       Embedding<Real>& gradient, Real* head_gradient);
  // Counts the inputs of the op on every device, all of which are placed.
  void count_inputs(OpId op);
  void backward_device_terms(std::size_t rows, const Real* head, Real* head_gradient);
  void backward_scores(const LossWeights& weights, Embedding<Real>& gradient) const;

  Watch* watch_ = nullptr;
  double sharpness_ = 1;
  EpisodeState state_;
  const HeadShape shape_;
  const bool keeps_;
  std::size_t ops_ = 0, devices_ = 0;
  Real placed_scale_ = 0;

  // SEL.
  const Embedding<Real>* embedding_ = nullptr;
  enum class Race : std::uint8_t { drawn, by_score, none } race_ = Race::none;
  Rng* rng_ = nullptr;
  double now_ = 0;
  std::vector<Racer> ready_;                                // A heap.
  std::vector<double> weight_;                              // exp(score).
  PreciseSum z_, z_score_;                                  // Σ weight, Σ weight · score over the ready set.
  std::vector<PreciseSum> sum_inverse_z_, sum_mean_score_;  // Sums of 1/Z and of mean score / Z before each step.
  std::vector<std::uint32_t> joined_, left_;  // The first step in the ready set, and the one that took it out.
  std::vector<double> sel_target_;            // Per op: how often it was the target.

  // PLC.
  std::vector<Real> device_sum_;  // Device × width: the scaled sums of `placed`.
  std::vector<Real> input_sum_;   // Device × width: for the op at hand, the sums of `producer`.
  std::vector<std::uint32_t> input_count_;
  std::vector<double> logit_;
  std::vector<Real> activation_now_, hidden_now_;

  // The episode.
  std::vector<OpId> order_;
  std::size_t step_ = 0;
  double sel_entropy_ = 0, plc_entropy_ = 0, log_probability_ = 0, sel_agreement_ = 0, plc_agreement_ = 0;
  std::vector<Real> probability_, log_probabilities_, target_;  // Step × device; 0 where an op may not go.
  std::vector<float> features_;                                 // Step × device × feature.
  std::vector<Real> activation_, hidden_;                       // Step × device × width, or × hidden; after φ.
  std::vector<char> decided_;                                   // Per step: there was a choice.

  // The backward pass.
  std::vector<Real> later_;  // Device × width: the gradients of later steps.
  std::vector<Real> hidden_gradient_, scratch_;
};

}  // namespace doppler
