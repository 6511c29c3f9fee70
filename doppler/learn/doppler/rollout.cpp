#include "doppler/learn/doppler/rollout.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/error.h"
#include "doppler/learn/nn/dense.h"

namespace doppler {
namespace {

constexpr double kSmallestGradient = 1e-9;  // Logits with a smaller gradient are skipped.
constexpr double kLongestRace = 1e8;  // In mean times of the op that joins: it has half of a double's digits left.

template <typename Real>
Real leaky(Real value) {
  return value > 0 ? value : static_cast<Real>(kLeak) * value;
}

}  // namespace

template <typename Real>
Rollout<Real>::Rollout(DeviceFeatureSet set, const HeadShape& shape, bool keeps_activations)
    : state_(set), shape_(shape), keeps_(keeps_activations) {
  DOPPLER_CHECK(shape.width % kBlock == 0 && shape.hidden % kBlock == 0, "width {}, hidden {}", shape.width,
                shape.hidden);
}

template <typename Real>
void Rollout<Real>::bind(const PolicyInput& input) {
  state_.bind(input);
  ops_ = input.op_count();
  devices_ = input.device_count();
  placed_scale_ = static_cast<Real>(4.0 * static_cast<double>(devices_) / static_cast<double>(ops_));
  for (auto* per_op : {&weight_, &sel_target_}) per_op->resize(ops_);
  for (auto* sums : {&sum_inverse_z_, &sum_mean_score_}) sums->resize(ops_ + 1);
  for (auto* steps : {&joined_, &left_}) steps->resize(ops_);
  for (auto* sums : {&device_sum_, &input_sum_, &activation_now_, &later_}) sums->resize(devices_ * shape_.width);
  hidden_now_.resize(devices_ * shape_.hidden);
  input_count_.resize(devices_);
  logit_.resize(devices_);
  ready_.reserve(ops_);
  order_.reserve(ops_);
  // The large ones only grow: shrinking and growing again would fill them with zeros each time.
  const auto grow = [](auto& values, std::size_t size) { values.resize(std::max(values.size(), size)); };
  const std::size_t rows = keeps_ ? ops_ * devices_ : devices_;
  grow(probability_, rows);
  grow(log_probabilities_, rows);
  grow(target_, rows);
  if (!keeps_) return;
  grow(features_, rows * shape_.features);
  grow(activation_, rows * shape_.width);
  grow(hidden_, rows * shape_.hidden);
  grow(decided_, ops_);
}

// The ready set.

template <typename Real>
void Rollout<Real>::begin(const Embedding<Real>& embedding) {
  state_.reset();
  embedding_ = &embedding;
  order_.clear();
  ready_.clear();
  now_ = 0;
  z_ = z_score_ = {};
  step_ = 0;
  sel_entropy_ = plc_entropy_ = log_probability_ = sel_agreement_ = plc_agreement_ = 0;
  sum_inverse_z_[0] = sum_mean_score_[0] = {};
  std::fill(device_sum_.begin(), device_sum_.end(), Real{0});
  std::fill(sel_target_.begin(), sel_target_.end(), 0.0);
  for (std::size_t op = 0; op < ops_; ++op)
    weight_[op] = std::exp(sharpness_ * static_cast<double>(embedding.score[op]));
  state_.for_each_source([&](OpId op) { join(op); });
}

template <typename Real>
void Rollout<Real>::join(OpId op) {
  joined_[op] = static_cast<std::uint32_t>(step_);
  z_.add(weight_[op]);
  z_score_.add(weight_[op] * static_cast<double>(embedding_->score[op]));
  enter_race(op);
}

template <typename Real>
void Rollout<Real>::enter_race(OpId op) {
  if (race_ == Race::none) return;
  double time = -static_cast<double>(embedding_->score[op]);
  if (race_ == Race::drawn) {
    if (now_ * weight_[op] > kLongestRace) {  // The time that it draws would be lost in the digits of now.
      for (Racer& racer : ready_) racer.time -= now_;
      now_ = 0;
    }
    time = now_ - std::log1p(-rng_->uniform()) / weight_[op];
  }
  ready_.push_back({time, op});
  std::push_heap(ready_.begin(), ready_.end());
}

template <typename Real>
OpId Rollout<Real>::next_in_race() {
  std::pop_heap(ready_.begin(), ready_.end());
  const Racer first = ready_.back();
  ready_.pop_back();
  now_ = first.time;
  return first.op;
}

// Books the decision of this step and takes the op out of the ready set.
template <typename Real>
void Rollout<Real>::leave(OpId op) {
  const double z = z_.value(), mean_score = z_score_.value() / z;
  sum_inverse_z_[step_ + 1] = sum_inverse_z_[step_];
  sum_inverse_z_[step_ + 1].add(1 / z);
  sum_mean_score_[step_ + 1] = sum_mean_score_[step_];
  sum_mean_score_[step_ + 1].add(mean_score / z);
  sel_entropy_ += std::max(0.0, std::log(z) - mean_score);
  left_[op] = static_cast<std::uint32_t>(step_);
  z_.add(-weight_[op]);
  z_score_.add(-weight_[op] * static_cast<double>(embedding_->score[op]));
}

// The device head.

template <typename Real>
void Rollout<Real>::device_term(const float* features, const Real* head, Real* sum, Real* hidden) const {
  const std::size_t width = shape_.width;
  if (shape_.hidden == 0) {
    dense::row_multiply_add(features, head, sum, shape_.features, width);
    return;
  }
  std::fill_n(hidden, shape_.hidden, Real{0});
  dense::row_multiply_add(features, head, hidden, shape_.features, shape_.hidden);
  for (std::size_t k = 0; k < shape_.hidden; ++k) hidden[k] = leaky(hidden[k]);
  dense::row_multiply_add(hidden, head + shape_.second_offset(), sum, shape_.hidden, width);
}

// Looks at the clock before a step, if anything does. A device takes some 150 ns and more where the op has many edges;
// where links differ, shares are spread from every device to every other.
template <typename Real>
void Rollout<Real>::spend(OpId op) {
  if (watch_ == nullptr) return;
  const PolicyInput& input = state_.input();
  const std::size_t edges = input.producers(op).size() + input.consumers(op).size();
  watch_->step(devices_ * (16 + edges / 4 + (input.uniform_links() ? 0 : devices_ / 4)));
}

template <typename Real>
double Rollout<Real>::find_logits(OpId op, std::size_t row, const Embedding<Real>& embedding, const Real* head) {
  using Block = dense::Block<Real>;
  const std::size_t width = shape_.width;
  std::fill(input_sum_.begin(), input_sum_.end(), Real{0});
  std::fill(input_count_.begin(), input_count_.end(), 0U);
  for (const PolicyInput::Edge& edge : state_.input().producers(op)) {
    const DeviceId device = state_.device_of_op()[edge.op];
    ++input_count_[device];
    dense::add(embedding.producer.data() + edge.op * width, input_sum_.data() + device * width, width);
  }
  const Real* output = head + shape_.output_offset();
  double largest = -Costs::kNever;
  for (std::size_t device = 0; device < devices_; ++device) {
    if (!state_.may_go(static_cast<DeviceId>(device))) continue;
    Real* sum = keeps_ ? activation_.data() + (row + device) * width : activation_now_.data() + device * width;
    Real* hidden =
        keeps_ ? hidden_.data() + (row + device) * shape_.hidden : hidden_now_.data() + device * shape_.hidden;
    const float* features = state_.features(static_cast<DeviceId>(device));
    if (keeps_) std::copy_n(features, shape_.features, features_.data() + (row + device) * shape_.features);
    const Real share = input_count_[device] > 0 ? Real{1} / static_cast<Real>(input_count_[device]) : Real{0};
    const Real *own = embedding.current.data() + op * width, *there = device_sum_.data() + device * width,
               *inputs = input_sum_.data() + device * width;
    for (std::size_t k = 0; k < width; k += kBlock) {
      Block total(own + k);
      total.add(Block(there + k));
      total.add_scaled(share, Block(inputs + k));
      total.store(sum + k);
    }
    device_term(features, head, sum, hidden);
    Real logit = 0;
    for (std::size_t k = 0; k < width; k += kBlock) {
      Block total(sum + k);
      total.leak(static_cast<Real>(kLeak));
      total.store(sum + k);
      logit += total.dot(Block(output + k));
    }
    logit_[device] = sharpness_ * static_cast<double>(logit);
    largest = std::max(largest, logit_[device]);
  }
  return largest;
}

// Leaves the probabilities of the devices in this step's row.
template <typename Real>
void Rollout<Real>::look(OpId op, const Embedding<Real>& embedding, const Real* head) {
  const std::size_t row = keeps_ ? step_ * devices_ : 0;
  spend(op);
  state_.observe(op);
  std::fill_n(probability_.begin() + static_cast<std::ptrdiff_t>(row), devices_, Real{0});
  std::fill_n(log_probabilities_.begin() + static_cast<std::ptrdiff_t>(row), devices_, Real{0});
  if (state_.choices() == 1) {
    for (std::size_t device = 0; device < devices_; ++device)
      if (state_.may_go(static_cast<DeviceId>(device))) probability_[row + device] = 1;
    return;
  }
  const double largest = find_logits(op, row, embedding, head);
  double total = 0;
  for (std::size_t device = 0; device < devices_; ++device)
    if (state_.may_go(static_cast<DeviceId>(device))) total += std::exp(logit_[device] - largest);
  const double log_total = largest + std::log(total);
  for (std::size_t device = 0; device < devices_; ++device) {
    if (!state_.may_go(static_cast<DeviceId>(device))) continue;
    log_probabilities_[row + device] = static_cast<Real>(logit_[device] - log_total);
    probability_[row + device] = std::exp(log_probabilities_[row + device]);
  }
}

template <typename Real>
DeviceId Rollout<Real>::decide(Deciding deciding, Rng& rng) const {
  const Real* probability = probability_.data() + (keeps_ ? step_ * devices_ : 0);
  if (state_.choices() == 1 || deciding == Deciding::greedy)
    return static_cast<DeviceId>(std::max_element(probability, probability + devices_) - probability);
  double left = rng.uniform();
  DeviceId last = 0;
  for (DeviceId device = 0; device < devices_; ++device) {
    if (!state_.may_go(device)) continue;
    last = device;
    left -= static_cast<double>(probability[device]);
    if (left < 0) break;
  }
  return last;
}

template <typename Real>
void Rollout<Real>::set_target(DeviceId device) {
  if (!keeps_) return;
  Real* row = target_.data() + step_ * devices_;
  std::fill_n(row, devices_, Real{0});
  row[device] = 1;
  log_probability_ += static_cast<double>(log_probabilities_[step_ * devices_ + device]);
}

// Books what the device head thought at this step.
template <typename Real>
void Rollout<Real>::book_devices() {
  if (!keeps_) return;
  const std::size_t row = step_ * devices_;
  decided_[step_] = state_.choices() > 1;
  for (std::size_t i = row; i < row + devices_; ++i)
    plc_entropy_ -= static_cast<double>(probability_[i] * log_probabilities_[i]);
}

template <typename Real>
void Rollout<Real>::commit(OpId op, DeviceId device, const Embedding<Real>& embedding) {
  const std::size_t width = shape_.width;
  dense::add_scaled(placed_scale_, embedding.placed.data() + op * width, device_sum_.data() + device * width, width);
  order_.push_back(op);
  ++step_;
  state_.place(op, device, [&](OpId next) { join(next); });
}

// Episodes.

template <typename Real>
void Rollout<Real>::act(const Embedding<Real>& embedding, const Real* head, Deciding deciding, Rng& rng) {
  race_ = deciding == Deciding::sampled ? Race::drawn : Race::by_score;
  rng_ = &rng;
  begin(embedding);
  while (!ready_.empty()) {
    before_step();
    const OpId op = next_in_race();
    sel_target_[op] = 1;
    log_probability_ += static_cast<double>(embedding.score[op]) - std::log(z_.value());
    leave(op);
    look(op, embedding, head);
    const DeviceId device = decide(deciding, rng);
    set_target(device);
    book_devices();
    commit(op, device, embedding);
  }
}

template <typename Real>
void Rollout<Real>::follow(const Embedding<Real>& embedding, const Real* head, std::span<const OpId> order,
                           std::span<const DeviceId> device_of_op) {
  race_ = Race::none;
  begin(embedding);
  for (const OpId op : order) {
    before_step();
    sel_target_[op] = 1;
    log_probability_ += static_cast<double>(embedding.score[op]) - std::log(z_.value());
    leave(op);
    look(op, embedding, head);
    // A repaired placement may sit where the mask would not have let it: nothing to learn from that step.
    const DeviceId device = device_of_op[op];
    if (!state_.may_go(device) && keeps_) {
      std::fill_n(probability_.data() + step_ * devices_, devices_, Real{0});
      std::fill_n(log_probabilities_.data() + step_ * devices_, devices_, Real{0});
      probability_[step_ * devices_ + device] = 1;
    }
    set_target(device);
    book_devices();
    commit(op, device, embedding);
  }
}

template <typename Real>
void Rollout<Real>::imitate(const Embedding<Real>& embedding, const Real* head, TeacherRule teacher, Rng& rng) {
  DOPPLER_CHECK(keeps_, "imitation without activations");
  race_ = Race::drawn;
  rng_ = &rng;
  begin(embedding);
  while (!ready_.empty()) {
    before_step();
    if (watch_ != nullptr) watch_->step(ready_.size());
    label_ops(teacher);
    const OpId op = next_in_race();
    leave(op);
    look(op, embedding, head);
    label_devices(teacher);
    book_devices();
    commit(op, decide(Deciding::sampled, rng), embedding);
  }
  sel_agreement_ /= static_cast<double>(ops_);
  plc_agreement_ /= static_cast<double>(ops_);
}

template <typename Real>
void Rollout<Real>::label_ops(TeacherRule) {
  const PolicyInput& input = state_.input();
  double best = -1, total = 0;
  OpId favourite = ready_.front().op;
  for (const Racer& racer : ready_) {
    best = std::max(best, input.b_level_moved(racer.op));
    if (embedding_->score[racer.op] > embedding_->score[favourite]) favourite = racer.op;
  }
  const auto labelled = [&](OpId op) { return input.b_level_moved(op) >= best; };
  for (const Racer& racer : ready_)
    if (labelled(racer.op)) total += weight_[racer.op];
  for (const Racer& racer : ready_)
    if (labelled(racer.op)) sel_target_[racer.op] += weight_[racer.op] / total;
  log_probability_ += std::log(total / z_.value());
  sel_agreement_ += labelled(favourite) ? 1 : 0;
}

template <typename Real>
void Rollout<Real>::label_devices(TeacherRule teacher) {
  const std::size_t row = step_ * devices_;
  const auto value = [&](DeviceId device) {
    return teacher == TeacherRule::heft ? state_.finish(device) : state_.start(device);
  };
  const auto log_probability = [&](DeviceId device) { return static_cast<double>(log_probabilities_[row + device]); };
  Seconds best = Costs::kNever;
  double total = 0, largest = -Costs::kNever;
  DeviceId favourite = 0;
  for (DeviceId device = 0; device < devices_; ++device) {
    if (state_.may_go(device)) best = std::min(best, value(device));
    if (probability_[row + device] > probability_[row + favourite]) favourite = device;
  }
  const auto labelled = [&](DeviceId device) { return state_.may_go(device) && value(device) <= best; };
  // Relative to the largest: what the policy thinks impossible may be less than the smallest Real.
  for (DeviceId device = 0; device < devices_; ++device)
    if (labelled(device)) largest = std::max(largest, log_probability(device));
  for (DeviceId device = 0; device < devices_; ++device)
    if (labelled(device)) total += std::exp(log_probability(device) - largest);
  for (DeviceId device = 0; device < devices_; ++device)
    target_[row + device] =
        labelled(device) ? static_cast<Real>(std::exp(log_probability(device) - largest) / total) : Real{0};
  log_probability_ += largest + std::log(total);
  plc_agreement_ += labelled(favourite) ? 1 : 0;
}

// The backward pass.

template <typename Real>
void Rollout<Real>::backward(const Real* head, const LossWeights& weights, Embedding<Real>& gradient,
                             Real* head_gradient) {
  DOPPLER_CHECK(keeps_ && order_.size() == ops_, "backward without an episode");
  const std::size_t width = shape_.width;
  std::fill(later_.begin(), later_.end(), Real{0});
  for (std::size_t step = ops_; step-- > 0;) {
    // The op's `placed` is part of its device's sum in all later steps.
    const OpId op = order_[step];
    spend(op);
    dense::add_scaled(placed_scale_, later_.data() + state_.device_of_op()[op] * width,
                      gradient.placed.data() + op * width, width);
    if (decided_[step]) {
      backward_devices(step, head, weights, gradient, head_gradient);
    } else {
      std::fill_n(activation_.data() + step * devices_ * width, devices_ * width, Real{0});
    }
  }
  backward_device_terms(ops_ * devices_, head, head_gradient);
  backward_scores(weights, gradient);
}

// Turns the step's activations into the gradients before φ, and adds what they mean for the op and its inputs.
template <typename Real>
void Rollout<Real>::backward_devices(std::size_t step, const Real* head, const LossWeights& weights,
                                     Embedding<Real>& gradient, Real* head_gradient) {
  const OpId op = order_[step];
  double entropy = 0;
  for (std::size_t row = step * devices_; row < (step + 1) * devices_; ++row)
    entropy -= static_cast<double>(probability_[row] * log_probabilities_[row]);
  count_inputs(op);
  for (std::size_t device = 0; device < devices_; ++device) {
    const std::size_t row = step * devices_ + device;
    const double p = static_cast<double>(probability_[row]);
    const double logit = weights.plc * (p - static_cast<double>(target_[row])) +
                         weights.entropy * p * (static_cast<double>(log_probabilities_[row]) + entropy);
    backward_device(row, op, static_cast<DeviceId>(device), logit, head, gradient, head_gradient);
  }
}

template <typename Real>
void Rollout<Real>::count_inputs(OpId op) {
  std::fill(input_count_.begin(), input_count_.end(), 0U);
  for (const PolicyInput::Edge& edge : state_.input().producers(op)) ++input_count_[state_.device_of_op()[edge.op]];
}

template <typename Real>
void Rollout<Real>::backward_device(std::size_t row, OpId op, DeviceId device, double logit, const Real* head,
                                    Embedding<Real>& gradient, Real* head_gradient) {
  using Block = dense::Block<Real>;
  const std::size_t width = shape_.width;
  const Real* output = head + shape_.output_offset();
  Real* activation = activation_.data() + row * width;
  if (std::abs(logit) < kSmallestGradient) {  // The same holds where the op could not go.
    std::fill_n(activation, width, Real{0});
    return;
  }
  const Real scale = static_cast<Real>(logit);
  dense::add_scaled(scale, activation, head_gradient + shape_.output_offset(), width);
  for (std::size_t k = 0; k < width; k += kBlock) {
    Block own(output + k);
    own.scale(scale);
    own.leak_where(Block(activation + k), static_cast<Real>(kLeak));
    own.store(activation + k);
  }
  dense::add(activation, gradient.current.data() + op * width, width);
  dense::add(activation, later_.data() + device * width, width);
  if (input_count_[device] == 0) return;
  for (const PolicyInput::Edge& edge : state_.input().producers(op))
    if (state_.device_of_op()[edge.op] == device)
      dense::add_scaled(Real{1} / static_cast<Real>(input_count_[device]), activation,
                        gradient.producer.data() + edge.op * width, width);
}

// The backward pass of D, for all steps together; activation_ holds the gradients of its result.
template <typename Real>
void Rollout<Real>::backward_device_terms(std::size_t rows, const Real* head, Real* head_gradient) {
  const std::size_t width = shape_.width, hidden = shape_.hidden;
  if (hidden == 0) {
    dense::outer_add(features_.data(), activation_.data(), head_gradient, rows, shape_.features, width);
    return;
  }
  dense::outer_add(hidden_.data(), activation_.data(), head_gradient + shape_.second_offset(), rows, hidden, width);
  hidden_gradient_.assign(rows * hidden, Real{0});
  dense::multiply_transposed_add(activation_.data(), head + shape_.second_offset(), hidden_gradient_.data(), rows,
                                 hidden, width, scratch_);
  for (std::size_t i = 0; i < rows * hidden; ++i)
    if (hidden_[i] <= 0) hidden_gradient_[i] *= static_cast<Real>(kLeak);
  dense::outer_add(features_.data(), hidden_gradient_.data(), head_gradient, rows, shape_.features, hidden);
}

// With w = exp(score): Σ_steps p = w Σ 1/Z over the steps in which the op was ready, and the entropy's gradient is
// −Σ_steps p (score − mean score).
template <typename Real>
void Rollout<Real>::backward_scores(const LossWeights& weights, Embedding<Real>& gradient) const {
  for (std::size_t op = 0; op < ops_; ++op) {
    const std::size_t from = joined_[op], to = left_[op] + 1;
    const double chosen = weight_[op] * (sum_inverse_z_[to] - sum_inverse_z_[from]);
    const double mean = weight_[op] * (sum_mean_score_[to] - sum_mean_score_[from]);
    const double score = static_cast<double>(embedding_->score[op]);
    gradient.score[op] +=
        static_cast<Real>(weights.sel * (chosen - sel_target_[op]) + weights.entropy * (score * chosen - mean));
  }
}

template class Rollout<float>;
template class Rollout<double>;

}  // namespace doppler
