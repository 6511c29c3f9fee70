#pragma once

#include <memory>

#include "doppler/learn/doppler/rollout.h"

namespace doppler {

// An episode in which messages are passed before every step: the network sees which ops are placed, when they end and
// which are ready, and both heads use the fresh embedding; what earlier embeddings said is forgotten. Same loss as
// Rollout. It is there to be compared with one embedding per episode: it does n times the work, and its backward pass
// embeds again.
template <typename Real>
class StepRollout final : public Rollout<Real> {
 public:
  // `network` must outlive it.
  StepRollout(Network<Real>& network, bool keeps_activations);

  // The embedding that is handed in plays no part.
  void act(const Embedding<Real>&, const Real* head, Deciding deciding, Rng& rng) override;
  void follow(const Embedding<Real>&, const Real* head, std::span<const OpId> order,
              std::span<const DeviceId> device_of_op) override;
  void imitate(const Embedding<Real>&, const Real* head, TeacherRule teacher, Rng& rng) override;
  // Adds to the gradients of the network itself; `gradient` stays as it is.
  void backward(const Real* head, const LossWeights& weights, Embedding<Real>& gradient, Real* head_gradient) override;

 private:
  static constexpr std::uint32_t kNotYet = std::numeric_limits<std::uint32_t>::max();
  void prepare(bool imitating);
  void before_step() override;
  bool is_ready(OpId op, std::size_t step) const { return this->joined_[op] <= step && step <= this->left_[op]; }
  void embed(std::size_t step);
  void backward_scores(std::size_t step, const LossWeights& weights);

  Network<Real>& network_;
  bool imitating_ = false;
  std::vector<Real> progress_;
  Embedding<Real> now_embedded_, now_gradient_;
};

// Makes the kind of rollout that the network needs.
template <typename Real>
std::unique_ptr<Rollout<Real>> make_rollout(Network<Real>& network, bool keeps_activations);

}  // namespace doppler
