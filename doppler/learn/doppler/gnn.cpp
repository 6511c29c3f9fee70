#include "doppler/learn/doppler/gnn.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/error.h"
#include "doppler/learn/nn/dense.h"

namespace doppler {
namespace {

// Gives memory back, which assigning nothing does not.
template <typename... Vector>
void release(Vector&... vectors) {
  ((vectors = Vector()), ...);
}

constexpr double kScoreLimit = 20;   // SEL's logits stay within it, so that no op is ever out of the question.
constexpr double kNormFloor = 1e-5;  // It is added to the variance in LayerNorm.

// The means over the neighbours of every op; their transpose adds to `to`.
enum class Side { producers, consumers };
std::span<const PolicyInput::Edge> edges(const PolicyInput& input, Side side, OpId op) {
  return side == Side::producers ? input.producers(op) : input.consumers(op);
}
template <typename Real>
void neighbour_mean(const PolicyInput& input, Side side, const Real* from, Real* to, std::size_t width) {
  std::fill_n(to, input.op_count() * width, Real{0});
  for (OpId op = 0; op < input.op_count(); ++op) {
    const auto neighbours = edges(input, side, op);
    for (const PolicyInput::Edge& edge : neighbours)
      dense::add_scaled(Real{1} / static_cast<Real>(neighbours.size()), from + edge.op * width, to + op * width, width);
  }
}
template <typename Real>
void neighbour_mean_transposed(const PolicyInput& input, Side side, const Real* from, Real* to, std::size_t width) {
  for (OpId op = 0; op < input.op_count(); ++op) {
    const auto neighbours = edges(input, side, op);
    for (const PolicyInput::Edge& edge : neighbours)
      dense::add_scaled(Real{1} / static_cast<Real>(neighbours.size()), from + op * width, to + edge.op * width, width);
  }
}

template <typename Real>
void keep_where_positive(const Real* activation, Real* gradient, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) gradient[i] = activation[i] > 0 ? gradient[i] : Real{0};
}

}  // namespace

template <typename Real>
void Embedding<Real>::resize(std::size_t ops, std::size_t width) {
  current.resize(ops * width);
  placed.resize(ops * width);
  producer.resize(ops * width);
  score.resize(ops);
}

template <typename Real>
void Embedding<Real>::fill_zero() {
  for (auto* part : {&current, &placed, &producer, &score}) std::fill(part->begin(), part->end(), Real{0});
}

template <typename Real>
std::size_t Gnn<Real>::allocate(std::size_t size, double bound, Rng& rng) {
  const std::size_t offset = this->parameters_.size();
  for (std::size_t i = 0; i < size; ++i) this->parameters_.push_back(static_cast<Real>(rng.uniform(-bound, bound)));
  return offset;
}

template <typename Real>
auto Gnn<Real>::linear(std::size_t inputs, std::size_t outputs, Rng& rng) -> Linear {
  const std::size_t weight = allocate(inputs * outputs, std::sqrt(3.0 / static_cast<double>(inputs)), rng);
  return {weight, allocate(outputs, 0, rng)};
}

template <typename Real>
Gnn<Real>::Gnn(const GnnShape& shape, Rng rng)
    : shape_(shape), inputs_(kNodeFeatureCount + (shape.per_step ? kProgressFeatures : 0)) {
  DOPPLER_CHECK(shape.width > 0 && shape.width % kBlock == 0, "width {}", shape.width);
  const std::size_t width = shape.width;
  const double bound = std::sqrt(3.0 / (4 * static_cast<double>(width)));  // Four blocks are summed.
  in_ = linear(inputs_, width, rng);
  for (std::size_t i = 0; i < shape.layers; ++i) {
    Layer layer{};
    for (std::size_t* block : {&layer.own, &layer.producers, &layer.consumers, &layer.graph})
      *block = allocate(width * width, bound, rng);
    layer.bias = allocate(width, 0, rng);
    layer.gain = allocate(width, 0, rng);
    std::fill_n(this->parameters_.begin() + static_cast<std::ptrdiff_t>(layer.gain), width, Real{1});
    layer.shift = allocate(width, 0, rng);
    layers_.push_back(layer);
  }
  current_ = linear(width, width, rng);
  placed_ = linear(width, width, rng);
  producer_ = linear(width, width, rng);
  score_hidden_ = linear(width, width, rng);
  // Both heads begin near uniform: the first samples should differ.
  score_ = {allocate(width, 0.3 * std::sqrt(3.0 / static_cast<double>(width)), rng), allocate(1, 0, rng)};
  const HeadShape head = head_shape();
  allocate(head.first_size(), std::sqrt(3.0 / static_cast<double>(head.features)), rng);
  allocate(width, 0.3 * std::sqrt(3.0 / static_cast<double>(width)), rng);
  this->gradients_.assign(this->parameters_.size(), Real{0});
  activations_.resize(shape.layers);
}

template <typename Real>
std::string Gnn<Real>::architecture() const {
  if (shape_.candidates > 0)
    return fmt::format("joint width {} layers {} ready {}", shape_.width, shape_.layers, shape_.candidates);
  return fmt::format("gnn width {} layers {} messages {}", shape_.width, shape_.layers,
                     shape_.per_step ? "step" : "episode");
}

template <typename Real>
void Gnn<Real>::embed(const PolicyInput& input, std::span<const Real> progress, Embedding<Real>& embedding) {
  const std::size_t width = shape_.width;
  input_ = &input;
  ops_ = input.op_count();
  DOPPLER_CHECK(progress.size() == (shape_.per_step ? ops_ * kProgressFeatures : 0), "{} progress features",
                progress.size());
  x_.resize(ops_ * inputs_);
  for (std::size_t op = 0; op < ops_; ++op) {
    std::copy_n(input.node_features().data() + op * kNodeFeatureCount, kNodeFeatureCount, x_.data() + op * inputs_);
    if (shape_.per_step)
      std::copy_n(progress.data() + op * kProgressFeatures, kProgressFeatures,
                  x_.data() + op * inputs_ + kNodeFeatureCount);
  }
  const Real* weights = this->parameters_.data();
  first_.resize(ops_ * width);
  this->spend(ops_ * inputs_ * width);
  dense::repeat_row(weights + in_.bias, first_.data(), ops_, width);
  dense::multiply_add(x_.data(), weights + in_.weight, first_.data(), ops_, inputs_, width);
  for (Real& value : first_) value = std::max(value, Real{0});
  if (this->keeps_) {
    h_ = first_;
  } else {
    h_.swap(first_);
    release(x_, first_);
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) forward_layer(i, h_);
  if (!this->keeps_) activations_ = std::vector<Activations>(layers_.size());

  embedding.resize(ops_, width);
  const auto map = [&](const Linear& linear, std::vector<Real>& to) {
    this->spend(ops_ * width * width);
    dense::repeat_row(weights + linear.bias, to.data(), ops_, width);
    dense::multiply_add(h_.data(), weights + linear.weight, to.data(), ops_, width, width);
  };
  map(current_, embedding.current);
  map(placed_, embedding.placed);
  map(producer_, embedding.producer);
  hidden_.resize(ops_ * width);
  map(score_hidden_, hidden_);
  if (!this->keeps_) release(h_);
  forward_score(embedding);
  if (!this->keeps_) release(hidden_);
}

template <typename Real>
void Gnn<Real>::forward_score(Embedding<Real>& embedding) {
  const std::size_t width = shape_.width;
  const Real* output = this->parameters_.data() + score_.weight;
  raw_score_.resize(ops_);
  for (std::size_t op = 0; op < ops_; ++op) {
    Real sum = this->parameters_[score_.bias];
    for (std::size_t k = 0; k < width; ++k) {
      Real& value = hidden_[op * width + k];
      value = std::max(value, Real{0});
      sum += value * output[k];
    }
    raw_score_[op] = sum;
    embedding.score[op] = static_cast<Real>(kScoreLimit * std::tanh(static_cast<double>(sum) / kScoreLimit));
  }
}

template <typename Real>
void Gnn<Real>::forward_layer(std::size_t index, std::vector<Real>& h) {
  const std::size_t width = shape_.width;
  const Layer& layer = layers_[index];
  const bool keeps = this->keeps_;
  Activations& a = activations_[keeps ? index : 0];
  std::vector<Real>& consumers = keeps ? a.consumers : a.producers;  // The one mean may take the place of the other.
  const Real* weights = this->parameters_.data();
  if (keeps) a.input = h;
  for (auto* part : {&a.producers, &consumers, &a.message}) part->resize(ops_ * width);
  if (keeps) a.normal.resize(ops_ * width);
  a.scale.resize(ops_);
  a.graph.assign(width, Real{0});
  dense::sum_rows(h.data(), a.graph.data(), ops_, width);
  for (Real& value : a.graph) value /= static_cast<Real>(ops_);

  // What the graph's mean adds is the same for all ops.
  work_.assign(weights + layer.bias, weights + layer.bias + width);
  dense::multiply_add(a.graph.data(), weights + layer.graph, work_.data(), 1, width, width);
  dense::repeat_row(work_.data(), a.message.data(), ops_, width);
  this->spend(ops_ * width * width);
  dense::multiply_add(h.data(), weights + layer.own, a.message.data(), ops_, width, width);
  this->spend(2 * ops_ * width * width);
  neighbour_mean(*input_, Side::producers, h.data(), a.producers.data(), width);
  dense::multiply_add(a.producers.data(), weights + layer.producers, a.message.data(), ops_, width, width);
  this->spend(2 * ops_ * width * width);
  neighbour_mean(*input_, Side::consumers, h.data(), consumers.data(), width);
  dense::multiply_add(consumers.data(), weights + layer.consumers, a.message.data(), ops_, width, width);

  this->spend(ops_ * width * width);
  for (std::size_t op = 0; op < ops_; ++op) {
    Real* row = h.data() + op * width;
    Real* normal = keeps ? a.normal.data() + op * width : row;
    Real* message = a.message.data() + op * width;
    Real mean = 0, square = 0;
    for (std::size_t k = 0; k < width; ++k) {
      message[k] = std::max(message[k], Real{0});
      normal[k] = row[k] + message[k];
      mean += normal[k];
    }
    mean /= static_cast<Real>(width);
    for (std::size_t k = 0; k < width; ++k) {
      normal[k] -= mean;
      square += normal[k] * normal[k];
    }
    const Real scale = Real{1} / std::sqrt(square / static_cast<Real>(width) + static_cast<Real>(kNormFloor));
    a.scale[op] = scale;
    for (std::size_t k = 0; k < width; ++k) {
      normal[k] *= scale;
      row[k] = normal[k] * weights[layer.gain + k] + weights[layer.shift + k];
    }
  }
}

template <typename Real>
void Gnn<Real>::backward(const Embedding<Real>& gradient) {
  DOPPLER_CHECK(this->keeps_, "backward of an embedding that was not kept");
  const std::size_t width = shape_.width;
  const Real* weights = this->parameters_.data();
  Real* gradients = this->gradients_.data();
  gradient_.assign(ops_ * width, Real{0});
  const auto map = [&](const Linear& linear, const std::vector<Real>& of) {
    this->spend(2 * ops_ * width * width);
    dense::sum_rows(of.data(), gradients + linear.bias, ops_, width);
    dense::outer_add(h_.data(), of.data(), gradients + linear.weight, ops_, width, width);
    dense::multiply_transposed_add(of.data(), weights + linear.weight, gradient_.data(), ops_, width, width, work_);
  };
  map(current_, gradient.current);
  map(placed_, gradient.placed);
  map(producer_, gradient.producer);
  backward_score(gradient);
  map(score_hidden_, message_gradient_);
  for (std::size_t i = layers_.size(); i-- > 0;) backward_layer(i, gradient_);
  keep_where_positive(first_.data(), gradient_.data(), ops_ * width);
  dense::sum_rows(gradient_.data(), gradients + in_.bias, ops_, width);
  dense::outer_add(x_.data(), gradient_.data(), gradients + in_.weight, ops_, inputs_, width);
}

// Leaves the gradient of hidden_ in message_gradient_.
template <typename Real>
void Gnn<Real>::backward_score(const Embedding<Real>& gradient) {
  const std::size_t width = shape_.width;
  const Real* output = this->parameters_.data() + score_.weight;
  Real* gradients = this->gradients_.data();
  message_gradient_.assign(ops_ * width, Real{0});
  for (std::size_t op = 0; op < ops_; ++op) {
    const double squashed = std::tanh(static_cast<double>(raw_score_[op]) / kScoreLimit);
    const Real raw = gradient.score[op] * static_cast<Real>(1 - squashed * squashed);
    gradients[score_.bias] += raw;
    const Real* hidden = hidden_.data() + op * width;
    for (std::size_t k = 0; k < width; ++k) {
      gradients[score_.weight + k] += raw * hidden[k];
      message_gradient_[op * width + k] = hidden[k] > 0 ? raw * output[k] : Real{0};
    }
  }
}

// `gradient` is that of the layer's result, and then that of its input.
template <typename Real>
void Gnn<Real>::backward_layer(std::size_t index, std::vector<Real>& gradient) {
  const std::size_t width = shape_.width;
  const Layer& layer = layers_[index];
  const Activations& a = activations_[index];
  const Real* weights = this->parameters_.data();
  Real* gradients = this->gradients_.data();
  this->spend(6 * ops_ * width * width);
  // LayerNorm: with y = gain · n + shift, dL/dsum = scale · (d − mean(d) − n · mean(d · n)), d = gain · dL/dy.
  for (std::size_t op = 0; op < ops_; ++op) {
    Real* row = gradient.data() + op * width;
    const Real* normal = a.normal.data() + op * width;
    Real mean = 0, along = 0;
    for (std::size_t k = 0; k < width; ++k) {
      gradients[layer.gain + k] += row[k] * normal[k];
      gradients[layer.shift + k] += row[k];
      row[k] *= weights[layer.gain + k];
      mean += row[k];
      along += row[k] * normal[k];
    }
    mean /= static_cast<Real>(width);
    along /= static_cast<Real>(width);
    for (std::size_t k = 0; k < width; ++k) row[k] = a.scale[op] * (row[k] - mean - normal[k] * along);
  }
  message_gradient_ = gradient;  // The sum's other part goes straight to the input.
  keep_where_positive(a.message.data(), message_gradient_.data(), ops_ * width);
  const Real* message = message_gradient_.data();

  dense::outer_add(a.input.data(), message, gradients + layer.own, ops_, width, width);
  dense::outer_add(a.producers.data(), message, gradients + layer.producers, ops_, width, width);
  dense::outer_add(a.consumers.data(), message, gradients + layer.consumers, ops_, width, width);
  dense::multiply_transposed_add(message, weights + layer.own, gradient.data(), ops_, width, width, work_);
  std::vector<Real>& mean = neighbour_gradient_;
  mean.assign(ops_ * width, Real{0});
  dense::multiply_transposed_add(message, weights + layer.producers, mean.data(), ops_, width, width, work_);
  neighbour_mean_transposed(*input_, Side::producers, mean.data(), gradient.data(), width);
  mean.assign(ops_ * width, Real{0});
  dense::multiply_transposed_add(message, weights + layer.consumers, mean.data(), ops_, width, width, work_);
  neighbour_mean_transposed(*input_, Side::consumers, mean.data(), gradient.data(), width);

  // The graph's mean and the bias reach every op alike: one row stands for all.
  row_gradient_.assign(2 * width, Real{0});
  Real* total = row_gradient_.data();
  Real* to_mean = total + width;
  dense::sum_rows(message, total, ops_, width);
  dense::add(total, gradients + layer.bias, width);
  dense::outer_add(a.graph.data(), total, gradients + layer.graph, 1, width, width);
  dense::multiply_transposed_add(total, weights + layer.graph, to_mean, 1, width, width, work_);
  for (std::size_t op = 0; op < ops_; ++op)
    dense::add_scaled(Real{1} / static_cast<Real>(ops_), to_mean, gradient.data() + op * width, width);
}

template struct Embedding<float>;
template struct Embedding<double>;
template class Gnn<float>;
template class Gnn<double>;

}  // namespace doppler
