#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "doppler/base/rng.h"
#include "doppler/learn/nn/tape.h"

namespace doppler {

// The flat parameters of a network and their gradients, and where each of its matrices lies in them.
template <typename Real>
class Parameters {
 public:
  struct Slot {
    std::size_t begin = 0, rows = 0, columns = 0;
  };

  explicit Parameters(Rng rng) : rng_(rng) {}

  // Weights of a layer with as many inputs as rows, drawn uniformly within ±1/√rows.
  Slot weights(std::size_t rows, std::size_t columns) {
    const double range = 1 / std::sqrt(static_cast<double>(rows));
    return add(rows, columns, [&] { return rng_.uniform(-range, range); });
  }
  Slot constants(std::size_t rows, std::size_t columns, double value) {
    return add(rows, columns, [&] { return value; });
  }

  typename Tape<Real>::Matrix on(Tape<Real>& tape, const Slot& slot) {
    return tape.parameter(slot.rows, slot.columns, values_.data() + slot.begin, gradients_.data() + slot.begin);
  }
  std::span<Real> values() { return values_; }
  std::span<const Real> values() const { return values_; }
  std::span<Real> gradients() { return gradients_; }
  std::span<Real> values(const Slot& slot) { return std::span(values_).subspan(slot.begin, slot.rows * slot.columns); }
  std::span<Real> gradients(const Slot& slot) {
    return std::span(gradients_).subspan(slot.begin, slot.rows * slot.columns);
  }

 private:
  template <typename Draw>
  Slot add(std::size_t rows, std::size_t columns, Draw draw) {
    const Slot slot{values_.size(), rows, columns};
    for (std::size_t i = 0; i < rows * columns; ++i) values_.push_back(static_cast<Real>(draw()));
    gradients_.resize(values_.size());
    return slot;
  }

  Rng rng_;
  std::vector<Real> values_, gradients_;
};

// x · w + b.
template <typename Real>
class Linear {
 public:
  Linear(Parameters<Real>& parameters, std::size_t inputs, std::size_t outputs)
      : parameters_(parameters),
        weights_(parameters.weights(inputs, outputs)),
        bias_(parameters.constants(1, outputs, 0)) {}

  auto operator()(Tape<Real>& tape, typename Tape<Real>::Matrix x) const {
    return tape.affine(x, parameters_.on(tape, weights_), parameters_.on(tape, bias_));
  }
  const typename Parameters<Real>::Slot& weights() const { return weights_; }
  const typename Parameters<Real>::Slot& bias() const { return bias_; }

 private:
  Parameters<Real>& parameters_;
  typename Parameters<Real>::Slot weights_, bias_;
};

template <typename Real>
class LayerNorm {
 public:
  LayerNorm(Parameters<Real>& parameters, std::size_t width)
      : parameters_(parameters), gain_(parameters.constants(1, width, 1)), bias_(parameters.constants(1, width, 0)) {}

  auto operator()(Tape<Real>& tape, typename Tape<Real>::Matrix x) const {
    return tape.layer_norm(x, parameters_.on(tape, gain_), parameters_.on(tape, bias_));
  }

 private:
  Parameters<Real>& parameters_;
  typename Parameters<Real>::Slot gain_, bias_;
};

// Long short-term memory (Hochreiter and Schmidhuber, 1997). With x the inputs and h, c the state:
//   [i | f | g | o] = x W + b + h U, c ← σ(f) ⊙ c + σ(i) ⊙ tanh(g), h ← σ(o) ⊙ tanh(c)
// It remembers at first: the bias of f is 1.
template <typename Real>
class Lstm {
 public:
  using Matrix = typename Tape<Real>::Matrix;
  struct State {
    Matrix h, c;
  };

  Lstm(Parameters<Real>& parameters, std::size_t inputs, std::size_t width)
      : parameters_(parameters),
        width_(width),
        inputs_(parameters, inputs, 4 * width),
        recurrent_(parameters.weights(width, 4 * width)) {
    const auto bias = parameters.values(inputs_.bias());
    std::fill_n(bias.begin() + static_cast<std::ptrdiff_t>(width), width, Real{1});
  }

  // x W + b, which needs no state: for any number of rows at once.
  Matrix gates(Tape<Real>& tape, Matrix x) const { return inputs_(tape, x); }
  // The state after one row of gates.
  State step(Tape<Real>& tape, Matrix gates, const State& before) const {
    const Matrix all = tape.sum(gates, tape.product(before.h, parameters_.on(tape, recurrent_)));
    const auto gate = [&](std::size_t i) { return tape.columns(all, i * width_, width_); };
    const Matrix kept = tape.elementwise(tape.sigmoid(gate(1)), before.c);
    const Matrix c = tape.sum(kept, tape.elementwise(tape.sigmoid(gate(0)), tape.tanh(gate(2))));
    return {tape.elementwise(tape.sigmoid(gate(3)), tape.tanh(c)), c};
  }
  const typename Parameters<Real>::Slot& weights() const { return inputs_.weights(); }

 private:
  Parameters<Real>& parameters_;
  std::size_t width_;
  Linear<Real> inputs_;
  typename Parameters<Real>::Slot recurrent_;
};

}  // namespace doppler
