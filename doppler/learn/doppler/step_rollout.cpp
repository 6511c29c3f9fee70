#include "doppler/learn/doppler/step_rollout.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/error.h"
#include "doppler/learn/doppler/joint_rollout.h"
#include "doppler/learn/nn/dense.h"

namespace doppler {

template <typename Real>
StepRollout<Real>::StepRollout(Network<Real>& network, bool keeps_activations)
    : Rollout<Real>(network.device_features(), network.head_shape(), keeps_activations), network_(network) {
  DOPPLER_CHECK(network.per_step(), "a network that does not look at the progress");
}

template <typename Real>
void StepRollout<Real>::prepare(bool imitating) {
  imitating_ = imitating;
  progress_.resize(this->ops_ * kProgressFeatures);
  now_embedded_.resize(this->ops_, this->shape_.width);
  now_embedded_.fill_zero();
  std::fill(this->joined_.begin(), this->joined_.end(), kNotYet);
  std::fill(this->left_.begin(), this->left_.end(), kNotYet);
}

template <typename Real>
void StepRollout<Real>::act(const Embedding<Real>&, const Real* head, Deciding deciding, Rng& rng) {
  prepare(false);
  Rollout<Real>::act(now_embedded_, head, deciding, rng);
}

template <typename Real>
void StepRollout<Real>::follow(const Embedding<Real>&, const Real* head, std::span<const OpId> order,
                               std::span<const DeviceId> device_of_op) {
  prepare(false);
  Rollout<Real>::follow(now_embedded_, head, order, device_of_op);
}

template <typename Real>
void StepRollout<Real>::imitate(const Embedding<Real>&, const Real* head, TeacherRule teacher, Rng& rng) {
  prepare(true);
  Rollout<Real>::imitate(now_embedded_, head, teacher, rng);
}

template <typename Real>
void StepRollout<Real>::embed(std::size_t step) {
  const Seconds horizon = this->state_.input().horizon();
  for (OpId op = 0; op < this->ops_; ++op) {
    const bool placed = this->left_[op] < step;
    Real* x = progress_.data() + op * kProgressFeatures;
    x[0] = placed ? Real{1} : Real{0};
    x[1] = placed ? static_cast<Real>(std::min(2.0, this->state_.end(op) / horizon)) : Real{0};
    x[2] = is_ready(op, step) ? Real{1} : Real{0};
  }
  network_.embed(this->state_.input(), progress_, now_embedded_);
}

// What the rollout keeps of earlier steps is computed anew, and the race is run anew: times are memoryless.
template <typename Real>
void StepRollout<Real>::before_step() {
  const std::size_t width = this->shape_.width, step = this->step_;
  embed(step);
  this->ready_.clear();
  this->now_ = 0;
  this->z_ = this->z_score_ = {};
  std::fill(this->device_sum_.begin(), this->device_sum_.end(), Real{0});
  for (OpId op = 0; op < this->ops_; ++op) {
    if (this->left_[op] < step)
      dense::add_scaled(this->placed_scale_, now_embedded_.placed.data() + op * width,
                        this->device_sum_.data() + this->state_.device_of_op()[op] * width, width);
    if (!is_ready(op, step)) continue;
    const auto score = static_cast<double>(now_embedded_.score[op]);
    this->weight_[op] = std::exp(this->sharpness_ * score);
    this->z_.add(this->weight_[op]);
    this->z_score_.add(this->weight_[op] * score);
    this->enter_race(op);
  }
}

template <typename Real>
void StepRollout<Real>::backward(const Real* head, const LossWeights& weights, Embedding<Real>&, Real* head_gradient) {
  DOPPLER_CHECK(this->keeps_ && this->order_.size() == this->ops_, "backward without an episode");
  const std::size_t width = this->shape_.width;
  now_gradient_.resize(this->ops_, width);
  for (std::size_t step = 0; step < this->ops_; ++step) {
    embed(step);
    now_gradient_.fill_zero();
    backward_scores(step, weights);
    if (this->decided_[step]) {
      std::fill(this->later_.begin(), this->later_.end(), Real{0});
      this->backward_devices(step, head, weights, now_gradient_, head_gradient);
      for (OpId op = 0; op < this->ops_; ++op)
        if (this->left_[op] < step)
          dense::add_scaled(this->placed_scale_, this->later_.data() + this->state_.device_of_op()[op] * width,
                            now_gradient_.placed.data() + op * width, width);
    } else {
      std::fill_n(this->activation_.data() + step * this->devices_ * width, this->devices_ * width, Real{0});
    }
    network_.backward(now_gradient_);
  }
  this->backward_device_terms(this->ops_ * this->devices_, head, head_gradient);
}

// The gradient of −log p(target) and of the entropy of one step's softmax.
template <typename Real>
void StepRollout<Real>::backward_scores(std::size_t step, const LossWeights& weights) {
  const PolicyInput& input = this->state_.input();
  double z = 0, mean = 0, best = -1, labelled = 0;
  const auto score = [&](OpId op) { return static_cast<double>(now_embedded_.score[op]); };
  for (OpId op = 0; op < this->ops_; ++op)
    if (is_ready(op, step)) best = std::max(best, input.b_level_moved(op));
  const auto is_target = [&](OpId op) {
    return imitating_ ? input.b_level_moved(op) >= best : op == this->order_[step];
  };
  for (OpId op = 0; op < this->ops_; ++op) {
    if (!is_ready(op, step)) continue;
    z += std::exp(score(op));
    mean += std::exp(score(op)) * score(op);
    if (is_target(op)) labelled += std::exp(score(op));
  }
  mean /= z;
  for (OpId op = 0; op < this->ops_; ++op) {
    if (!is_ready(op, step)) continue;
    const double p = std::exp(score(op)) / z, target = is_target(op) ? std::exp(score(op)) / labelled : 0;
    now_gradient_.score[op] = static_cast<Real>(weights.sel * (p - target) + weights.entropy * p * (score(op) - mean));
  }
}

template <typename Real>
std::unique_ptr<Rollout<Real>> make_rollout(Network<Real>& network, bool keeps_activations) {
  if (network.per_step()) return std::make_unique<StepRollout<Real>>(network, keeps_activations);
  if (network.candidates() > 0)
    return std::make_unique<JointRollout<Real>>(network.device_features(), network.head_shape(), network.candidates(),
                                                keeps_activations);
  return std::make_unique<Rollout<Real>>(network.device_features(), network.head_shape(), keeps_activations);
}

template class StepRollout<float>;
template class StepRollout<double>;
template std::unique_ptr<Rollout<float>> make_rollout(Network<float>&, bool);
template std::unique_ptr<Rollout<double>> make_rollout(Network<double>&, bool);

}  // namespace doppler
