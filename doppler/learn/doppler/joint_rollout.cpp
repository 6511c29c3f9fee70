#include "doppler/learn/doppler/joint_rollout.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/error.h"
#include "doppler/learn/nn/dense.h"

namespace doppler {

template <typename Real>
JointRollout<Real>::JointRollout(DeviceFeatureSet set, const HeadShape& shape, std::size_t candidates,
                                 bool keeps_activations)
    : Rollout<Real>(set, shape, keeps_activations), most_(candidates) {
  DOPPLER_CHECK(candidates > 0, "a joint policy without candidates");
}

template <typename Real>
void JointRollout<Real>::start(const Embedding<Real>& embedding) {
  waiting_.clear();
  candidates_.clear();
  first_.assign(1, 0);
  this->begin(embedding);
}

// Ops of equal b-levels are ordered by id: the first is the better candidate.
template <typename Real>
void JointRollout<Real>::join(OpId op) {
  const PolicyInput& input = this->state_.input();
  const auto worse = [&](OpId a, OpId b) {
    return input.b_level_moved(a) != input.b_level_moved(b) ? input.b_level_moved(a) < input.b_level_moved(b) : a > b;
  };
  waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), op, worse), op);
}

// Episodes differ in how many candidates they have, so room is made as it is needed.
template <typename Real>
void JointRollout<Real>::make_room(std::size_t rows) {
  const auto grow = [](auto& values, std::size_t size) {
    if (values.size() < size) values.resize(std::max(size, 2 * values.size()));
  };
  grow(this->probability_, rows);
  grow(this->log_probabilities_, rows);
  grow(this->target_, rows);
  if (!this->keeps_) return;
  grow(this->features_, rows * this->shape_.features);
  grow(this->activation_, rows * this->shape_.width);
  grow(this->hidden_, rows * this->shape_.hidden);
}

// Leaves the probabilities of all pairs in this step's rows, and which of them the teacher would take if there is one.
// Returns their entropy.
template <typename Real>
double JointRollout<Real>::look_at_pairs(const Embedding<Real>& embedding, const Real* head, const OpId* wanted,
                                         const TeacherRule* teacher) {
  const std::size_t devices = this->devices_;
  EpisodeState& state = this->state_;
  const std::size_t count = std::min(most_, waiting_.size());
  candidates_.insert(candidates_.end(), waiting_.rbegin(), waiting_.rbegin() + static_cast<std::ptrdiff_t>(count));
  if (wanted != nullptr && std::find(candidates_.end() - static_cast<std::ptrdiff_t>(count), candidates_.end(),
                                     *wanted) == candidates_.end())
    candidates_.push_back(*wanted);
  const std::size_t rows = candidate_count() * devices, begin = first_row();
  make_room(begin + rows);
  pair_logit_.resize(rows);
  allowed_.assign(rows, 0);
  label_.assign(rows, 0);
  const OpId* const ops = candidates_.data() + first_[this->step_];
  double largest = -Costs::kNever;
  for (std::size_t i = 0; i < candidate_count(); ++i) {
    this->spend(ops[i]);
    state.observe(ops[i]);
    const double score = this->sharpness_ * static_cast<double>(embedding.score[ops[i]]);
    largest =
        std::max(largest, score + this->find_logits(ops[i], this->keeps_ ? begin + i * devices : 0, embedding, head));
    Seconds best = Costs::kNever;
    const auto value = [&](DeviceId device) {
      return *teacher == TeacherRule::heft ? state.finish(device) : state.start(device);
    };
    const bool labelled =
        teacher != nullptr && state.input().b_level_moved(ops[i]) >= state.input().b_level_moved(ops[0]);
    for (DeviceId device = 0; device < devices; ++device) {
      allowed_[i * devices + device] = state.may_go(device);
      pair_logit_[i * devices + device] = score + this->logit_[device];
      if (labelled && state.may_go(device)) best = std::min(best, value(device));
    }
    for (DeviceId device = 0; labelled && device < devices; ++device)
      label_[i * devices + device] = state.may_go(device) && value(device) <= best;
  }
  double total = 0;
  for (std::size_t row = 0; row < rows; ++row)
    if (allowed_[row]) total += std::exp(pair_logit_[row] - largest);
  const double log_total = largest + std::log(total);
  double entropy = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const double log_probability = allowed_[row] ? pair_logit_[row] - log_total : 0;
    const double probability = allowed_[row] ? std::exp(log_probability) : 0;
    this->log_probabilities_[begin + row] = static_cast<Real>(log_probability);
    this->probability_[begin + row] = static_cast<Real>(probability);
    this->target_[begin + row] = 0;
    entropy -= probability * log_probability;
  }
  if (this->keeps_) this->decided_[this->step_] = 1;
  return entropy;
}

template <typename Real>
typename JointRollout<Real>::Pair JointRollout<Real>::choose(Deciding deciding, Rng& rng) const {
  const std::size_t begin = first_row(), rows = candidate_count() * this->devices_;
  const auto first = this->probability_.begin() + static_cast<std::ptrdiff_t>(begin);
  std::size_t chosen = 0;
  if (deciding == Deciding::greedy) {
    chosen = static_cast<std::size_t>(std::max_element(first, first + static_cast<std::ptrdiff_t>(rows)) - first);
  } else {
    double left = rng.uniform();
    for (std::size_t row = 0; row < rows; ++row) {
      if (!allowed_[row]) continue;
      chosen = row;
      left -= static_cast<double>(this->probability_[begin + row]);
      if (left < 0) break;
    }
  }
  return {chosen / this->devices_, static_cast<DeviceId>(chosen % this->devices_)};
}

// The targets are the teacher's pairs, each as probable among them as the policy thinks.
template <typename Real>
void JointRollout<Real>::label_pairs() {
  const std::size_t begin = first_row(), rows = candidate_count() * this->devices_;
  const auto log_probability = [&](std::size_t row) {
    return static_cast<double>(this->log_probabilities_[begin + row]);
  };
  // Relative to the largest: what the policy thinks impossible may be less than the smallest Real.
  double largest = -Costs::kNever, total = 0;
  std::size_t favourite = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    if (label_[row]) largest = std::max(largest, log_probability(row));
    if (this->probability_[begin + row] > this->probability_[begin + favourite]) favourite = row;
  }
  for (std::size_t row = 0; row < rows; ++row)
    if (label_[row]) total += std::exp(log_probability(row) - largest);
  for (std::size_t row = 0; row < rows; ++row)
    if (label_[row]) this->target_[begin + row] = static_cast<Real>(std::exp(log_probability(row) - largest) / total);
  this->log_probability_ += largest + std::log(total);
  this->sel_agreement_ += label_[favourite] ? 1 : 0;
}

template <typename Real>
void JointRollout<Real>::take(Pair pair, const Embedding<Real>& embedding) {
  const OpId op = candidates_[first_[this->step_] + pair.candidate];
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), op));
  if (candidate_count() > 1) this->state_.observe(op);  // Another candidate was looked at since.
  first_.push_back(candidates_.size());
  this->commit(op, pair.device, embedding);
}

template <typename Real>
void JointRollout<Real>::act(const Embedding<Real>& embedding, const Real* head, Deciding deciding, Rng& rng) {
  start(embedding);
  while (!waiting_.empty()) {
    this->sel_entropy_ += look_at_pairs(embedding, head, nullptr, nullptr);
    const Pair pair = choose(deciding, rng);
    const std::size_t row = first_row() + pair.candidate * this->devices_ + pair.device;
    this->target_[row] = 1;
    this->log_probability_ += static_cast<double>(this->log_probabilities_[row]);
    take(pair, embedding);
  }
}

template <typename Real>
void JointRollout<Real>::follow(const Embedding<Real>& embedding, const Real* head, std::span<const OpId> order,
                                std::span<const DeviceId> device_of_op) {
  start(embedding);
  for (const OpId op : order) {
    const double entropy = look_at_pairs(embedding, head, &op, nullptr);
    const auto begin = candidates_.begin() + static_cast<std::ptrdiff_t>(first_[this->step_]);
    const Pair pair = {static_cast<std::size_t>(std::find(begin, candidates_.end(), op) - begin), device_of_op[op]};
    const std::size_t local = pair.candidate * this->devices_ + pair.device, row = first_row() + local;
    this->target_[row] = 1;
    this->log_probability_ += static_cast<double>(this->log_probabilities_[row]);
    // A repaired placement may sit where the mask would not have let it: nothing to learn from that step.
    if (allowed_[local])
      this->sel_entropy_ += entropy;
    else if (this->keeps_)
      this->decided_[this->step_] = 0;
    take(pair, embedding);
  }
}

template <typename Real>
void JointRollout<Real>::imitate(const Embedding<Real>& embedding, const Real* head, TeacherRule teacher, Rng& rng) {
  DOPPLER_CHECK(this->keeps_, "imitation without activations");
  start(embedding);
  while (!waiting_.empty()) {
    this->sel_entropy_ += look_at_pairs(embedding, head, nullptr, &teacher);
    label_pairs();
    take(choose(Deciding::sampled, rng), embedding);
  }
  this->sel_agreement_ /= static_cast<double>(this->ops_);
}

template <typename Real>
void JointRollout<Real>::backward(const Real* head, const LossWeights& weights, Embedding<Real>& gradient,
                                  Real* head_gradient) {
  DOPPLER_CHECK(this->keeps_ && this->order_.size() == this->ops_, "backward without an episode");
  const std::size_t width = this->shape_.width, devices = this->devices_;
  std::fill(this->later_.begin(), this->later_.end(), Real{0});
  for (std::size_t step = this->ops_; step-- > 0;) {
    // The op's `placed` is part of its device's sum in all later steps.
    const OpId placed = this->order_[step];
    dense::add_scaled(this->placed_scale_, this->later_.data() + this->state_.device_of_op()[placed] * width,
                      gradient.placed.data() + placed * width, width);
    const std::size_t begin = first_[step] * devices, end = first_[step + 1] * devices;
    if (!this->decided_[step]) {
      std::fill_n(this->activation_.data() + begin * width, (end - begin) * width, Real{0});
      continue;
    }
    double entropy = 0;
    for (std::size_t row = begin; row < end; ++row)
      entropy -= static_cast<double>(this->probability_[row] * this->log_probabilities_[row]);
    for (std::size_t row = begin; row < end; ++row) {
      const OpId op = candidates_[row / devices];
      if (row % devices == 0) this->count_inputs(op);
      const double p = static_cast<double>(this->probability_[row]);
      const double logit = weights.plc * (p - static_cast<double>(this->target_[row])) +
                           weights.entropy * p * (static_cast<double>(this->log_probabilities_[row]) + entropy);
      gradient.score[op] += static_cast<Real>(logit);
      this->backward_device(row, op, static_cast<DeviceId>(row % devices), logit, head, gradient, head_gradient);
    }
  }
  this->backward_device_terms(first_[this->ops_] * devices, head, head_gradient);
}

template class JointRollout<float>;
template class JointRollout<double>;

}  // namespace doppler
