// RNN, GRU and LSTM: the products of the inputs with their weights are one for all steps, those of the state one per
// step; everything else is elementwise.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "doppler/kernels/onnx/activation.h"
#include "doppler/kernels/onnx/matmul.h"
#include "doppler/kernels/onnx/special.h"

namespace doppler::model {
namespace {

enum class Cell : std::uint8_t { rnn, gru, lstm };

struct Recurrent {
  Cell cell = Cell::rnn;
  Index gates = 1, directions = 1, batch = 1, steps = 1, inputs = 1, hidden = 1;
  bool first_backward = false;        // direction "reverse"
  bool batch_first = false;           // layout 1
  bool reset_after = false;           // GRU: linear_before_reset
  bool coupled = false;               // LSTM: input_forget
  float clip = 0;                     // 0: none
  std::vector<Activation> functions;  // per direction: f, g, h

  const Activation& function(Index direction, std::size_t i) const {
    const std::size_t each = cell == Cell::rnn ? 1 : cell == Cell::gru ? 2 : 3;
    return functions[static_cast<std::size_t>(direction) * each + i];
  }
};

Activation cell_function(const std::string& name, const std::vector<float>& alphas, const std::vector<float>& betas,
                         std::size_t& alpha, std::size_t& beta) {
  const auto next = [](const std::vector<float>& list, std::size_t& at, float otherwise) {
    return at < list.size() ? list[at++] : otherwise;
  };
  if (name == "Relu") return {Unary::relu, 0, 0};
  if (name == "Tanh") return {Unary::tanh, 0, 0};
  if (name == "Sigmoid") return {Unary::sigmoid, 0, 0};
  if (name == "Softsign") return {Unary::softsign, 0, 0};
  if (name == "Softplus") return {Unary::softplus, 0, 0};
  if (name == "LeakyRelu") return {Unary::leaky_relu, next(alphas, alpha, 0.01F), 0};
  if (name == "ThresholdedRelu") return {Unary::thresholded_relu, next(alphas, alpha, 1), 0};
  if (name == "Elu") return {Unary::elu, next(alphas, alpha, 1), 0};
  if (name == "HardSigmoid") return {Unary::hard_sigmoid, next(alphas, alpha, 0.2F), next(betas, beta, 0.5F)};
  if (name == "Affine") return {Unary::linear, next(alphas, alpha, 1), next(betas, beta, 0)};
  refuse(fmt::format("activation '{}'", name), "one of ONNX's for recurrent cells");
}

Recurrent read_recurrent(const Spec& spec) {
  Recurrent r;
  const std::string& op = spec.node.op_type;
  r.cell = op == "RNN" ? Cell::rnn : op == "GRU" ? Cell::gru : Cell::lstm;
  r.gates = r.cell == Cell::rnn ? 1 : r.cell == Cell::gru ? 3 : 4;
  spec.require_inputs(3, r.cell == Cell::lstm ? 8 : 6);
  for (const std::size_t i : {0, 1, 2}) spec.require_rank(i, 3, 3);
  const std::string direction = spec.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    refuse(fmt::format("direction '{}'", direction), "forward, reverse or bidirectional");
  r.directions = direction == "bidirectional" ? 2 : 1;
  r.first_backward = direction == "reverse";
  r.batch_first = spec.integer("layout", 0) != 0;
  const Shape& x = spec.shape(0);
  r.steps = x[r.batch_first ? 1 : 0];
  r.batch = x[r.batch_first ? 0 : 1];
  r.inputs = x[2];
  r.hidden = spec.shape(2)[2];
  if (spec.integer("hidden_size", r.hidden) != r.hidden) refuse("another hidden_size than the weights'", "the same");
  const auto require_shape = [&](std::size_t input, const Shape& shape) {
    if (spec.has(input) && (spec.shape(input) != shape || spec.element(input) != spec.element(0)))
      refuse(fmt::format("input {} of {}", input, to_string(spec.type(input))), program::to_string(shape));
  };
  require_shape(1, {r.directions, r.gates * r.hidden, r.inputs});
  require_shape(2, {r.directions, r.gates * r.hidden, r.hidden});
  require_shape(3, {r.directions, 2 * r.gates * r.hidden});
  if (spec.has(4)) {
    if (spec.shape(4) != Shape{r.batch}) refuse("other sequence_lens than batches", fmt::format("[{}]", r.batch));
    spec.require_element(4, {Element::i64});  // widened
  }
  const Shape state = r.batch_first ? Shape{r.batch, r.directions, r.hidden} : Shape{r.directions, r.batch, r.hidden};
  require_shape(5, state);
  if (r.cell == Cell::lstm) {
    require_shape(6, state);
    require_shape(7, {r.directions, 3 * r.hidden});
  }
  r.reset_after = spec.integer("linear_before_reset", 0) != 0;
  r.coupled = spec.integer("input_forget", 0) != 0;
  r.clip = spec.real("clip", 0);
  const std::vector<std::string> defaults = r.cell == Cell::rnn   ? std::vector<std::string>{"Tanh"}
                                            : r.cell == Cell::gru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                                  : std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"};
  std::vector<std::string> names = spec.attributes().texts("activations").value_or(std::vector<std::string>());
  while (names.size() < defaults.size() * static_cast<std::size_t>(r.directions))
    names.push_back(defaults[names.size() % defaults.size()]);
  const std::vector<float> alphas = spec.attributes().reals("activation_alpha").value_or(std::vector<float>());
  const std::vector<float> betas = spec.attributes().reals("activation_beta").value_or(std::vector<float>());
  std::size_t alpha = 0, beta = 0;
  for (const std::string& name : names) r.functions.push_back(cell_function(name, alphas, betas, alpha, beta));
  return r;
}

// The memory of one direction, all of scratch.
template <typename T>
struct Memory {
  T *inputs, *projected, *state_product, *h, *c, *reset;

  static std::size_t count(const Recurrent& r) {
    return static_cast<std::size_t>(r.steps * r.batch * (r.inputs + r.gates * r.hidden) +
                                    r.batch * r.hidden * (r.gates + 3));
  }
  Memory(const Recurrent& r, T* memory) {
    inputs = memory;
    projected = inputs + r.steps * r.batch * r.inputs;
    state_product = projected + r.steps * r.batch * r.gates * r.hidden;
    h = state_product + r.batch * r.gates * r.hidden;
    c = h + r.batch * r.hidden;
    reset = c + r.batch * r.hidden;
  }
};

template <typename T>
struct CellRow {
  const T* x;      // the products of the input, one part per gate, biases added
  const T* state;  // those of the state
  const T *w_bias, *r_bias, *peepholes;
  T *h, *c;
};

template <typename T>
void bound(const Recurrent& r, T* values, Index count) {
  if (r.clip > 0)
    float_loops<T>().unary[static_cast<std::size_t>(Unary::clip)](values, values, static_cast<std::size_t>(count),
                                                                  static_cast<T>(-r.clip), static_cast<T>(r.clip));
}

// out = x + state + biases of gate g, bounded and then put through its function.
template <typename T>
void gate(const Recurrent& r, const CellRow<T>& row, Index g, const T* peephole, const T* cell, T* out,
          const Activation& function) {
  for (Index i = 0; i < r.hidden; ++i) {
    const Index at = g * r.hidden + i;
    T sum = row.x[at] + row.state[at];
    if (row.w_bias != nullptr) sum += row.w_bias[at] + row.r_bias[at];
    if (peephole != nullptr) sum += peephole[i] * cell[i];
    out[i] = sum;
  }
  bound(r, out, r.hidden);
  function.apply(out, static_cast<std::size_t>(r.hidden));
}

template <typename T>
void lstm_row(const Recurrent& r, Index direction, const CellRow<T>& row, T* gates) {
  T *input = gates, *output = gates + r.hidden, *forget = output + r.hidden, *candidate = forget + r.hidden;
  const T* p = row.peepholes;  // of input, output and forget gate
  gate(r, row, 0, p, row.c, input, r.function(direction, 0));
  gate(r, row, 2, p != nullptr ? p + 2 * r.hidden : nullptr, row.c, forget, r.function(direction, 0));
  gate<T>(r, row, 3, nullptr, nullptr, candidate, r.function(direction, 1));
  for (Index i = 0; i < r.hidden; ++i) {
    const T kept = r.coupled ? 1 - input[i] : forget[i];
    row.c[i] = kept * row.c[i] + input[i] * candidate[i];
  }
  gate(r, row, 1, p != nullptr ? p + r.hidden : nullptr, row.c, output, r.function(direction, 0));
  std::copy_n(row.c, r.hidden, candidate);
  r.function(direction, 2).apply(candidate, static_cast<std::size_t>(r.hidden));
  for (Index i = 0; i < r.hidden; ++i) row.h[i] = output[i] * candidate[i];
}

template <typename T>
void run_direction(const Recurrent& r, Index direction, const Run& run, Memory<T> m, T* gates) {
  const Index h = r.hidden, wide = r.gates * h;
  const bool backward = direction == 1 || r.first_backward;
  const T* weights = run.in<T>(1) + direction * wide * r.inputs;
  const T* recurrence = run.in<T>(2) + direction * wide * h;
  const T* biases = run.in<T>(3) != nullptr ? run.in<T>(3) + direction * 2 * wide : nullptr;
  const T* w_bias = biases;
  const T* r_bias = biases != nullptr ? biases + wide : nullptr;
  const Index* lengths = run.in<Index>(4);
  // Tensors of states are [directions, batch, hidden], or [batch, directions, hidden].
  const auto state_at = [&](Index b) {
    return (r.batch_first ? b * r.directions + direction : direction * r.batch + b) * h;
  };
  for (Index b = 0; b < r.batch; ++b) {
    for (const auto& [to, from] : {std::pair(m.h, run.in<T>(5)), std::pair(m.c, run.in<T>(6))}) {
      if (from != nullptr && (to == m.h || r.cell == Cell::lstm))
        std::copy_n(from + state_at(b), h, to + b * h);
      else
        std::fill_n(to + b * h, h, T(0));
    }
  }
  const T* x = run.in<T>(0);
  if (r.batch_first)  // time first, as the weights' product wants it
    for (Index t = 0; t < r.steps; ++t)
      for (Index b = 0; b < r.batch; ++b)
        std::copy_n(x + (b * r.steps + t) * r.inputs, r.inputs, m.inputs + (t * r.batch + b) * r.inputs);
  run_product<T>({{}, r.steps * r.batch, wide, r.inputs, {{}, r.inputs, 1}, {{}, 1, r.inputs}},
                 r.batch_first ? m.inputs : x, weights, m.projected);
  T* y = run.out<T>(0);
  if (y != nullptr && lengths != nullptr)
    for (Index t = 0; t < r.steps; ++t)
      for (Index b = 0; b < r.batch; ++b) {
        const Index at =
            r.batch_first ? (b * r.steps + t) * r.directions + direction : (t * r.directions + direction) * r.batch + b;
        std::fill_n(y + at * h, h, T(0));
      }
  for (Index step = 0; step < r.steps; ++step) {
    // All gates of an LSTM and an RNN see the state as it is; the candidate of a GRU may see it after the reset.
    run_product<T>({{}, r.batch, wide, h, {{}, h, 1}, {{}, 1, h}}, m.h, recurrence, m.state_product);
    for (Index b = 0; b < r.batch; ++b) {
      const Index length = lengths != nullptr ? std::clamp<Index>(lengths[b], 0, r.steps) : r.steps;
      if (step >= length) continue;
      const Index t = backward ? length - 1 - step : step;
      const T* peepholes = r.cell == Cell::lstm && run.in<T>(7) != nullptr ? run.in<T>(7) + direction * 3 * h : nullptr;
      CellRow<T> row{m.projected + (t * r.batch + b) * wide,
                     m.state_product + b * wide,
                     w_bias,
                     r_bias,
                     peepholes,
                     m.h + b * h,
                     m.c + b * h};
      if (r.cell == Cell::rnn) {
        gate<T>(r, row, 0, nullptr, nullptr, gates, r.function(direction, 0));
        std::copy_n(gates, h, row.h);
      } else if (r.cell == Cell::lstm) {
        lstm_row(r, direction, row, gates);
      } else {
        T *update = gates, *reset = gates + h, *candidate = reset + h;
        gate<T>(r, row, 0, nullptr, nullptr, update, r.function(direction, 0));
        gate<T>(r, row, 1, nullptr, nullptr, reset, r.function(direction, 0));
        T* product = gates + 3 * h;
        if (r.reset_after) {
          for (Index i = 0; i < h; ++i)
            product[i] = reset[i] * (row.state[2 * h + i] + (r_bias != nullptr ? r_bias[2 * h + i] : T(0)));
        } else {
          for (Index i = 0; i < h; ++i) m.reset[i] = reset[i] * row.h[i];
          run_product<T>({{}, 1, h, h, {{}, h, 1}, {{}, 1, h}}, m.reset, recurrence + 2 * h * h, product);
          if (r_bias != nullptr)
            for (Index i = 0; i < h; ++i) product[i] += r_bias[2 * h + i];
        }
        for (Index i = 0; i < h; ++i)
          candidate[i] = row.x[2 * h + i] + product[i] + (w_bias != nullptr ? w_bias[2 * h + i] : T(0));
        bound(r, candidate, h);
        r.function(direction, 1).apply(candidate, static_cast<std::size_t>(h));
        for (Index i = 0; i < h; ++i) row.h[i] = (1 - update[i]) * candidate[i] + update[i] * row.h[i];
      }
      if (y == nullptr) continue;
      const Index at =
          r.batch_first ? (b * r.steps + t) * r.directions + direction : (t * r.directions + direction) * r.batch + b;
      std::copy_n(row.h, h, y + at * h);
    }
  }
  for (Index b = 0; b < r.batch; ++b) {
    if (T* last = run.out<T>(1)) std::copy_n(m.h + b * h, h, last + state_at(b));
    if (T* last = run.out<T>(2)) std::copy_n(m.c + b * h, h, last + state_at(b));
  }
}

}  // namespace

std::unique_ptr<NodeKernel> make_recurrent(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  const Recurrent r = read_recurrent(spec);
  const Shape state = r.batch_first ? Shape{r.batch, r.directions, r.hidden} : Shape{r.directions, r.batch, r.hidden};
  const Shape all =
      r.batch_first ? Shape{r.batch, r.steps, r.directions, r.hidden} : Shape{r.steps, r.directions, r.batch, r.hidden};
  std::vector<TensorType> outputs;
  for (std::size_t i = 0; i < spec.node.outputs_used.size() && i < (r.cell == Cell::lstm ? 3U : 2U); ++i)
    outputs.push_back({spec.used(i) ? spec.element(0) : Element::none, i == 0 ? all : state});
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    const std::size_t count = Memory<T>::count(r);
    return make_function_kernel(spec, outputs,
                                [=](const Run& run) {
                                  auto* memory = reinterpret_cast<T*>(run.scratch);
                                  for (Index direction = 0; direction < r.directions; ++direction)
                                    run_direction(r, direction, run, Memory<T>(r, memory), memory + count);
                                },
                                {.scratch_bytes = (count + static_cast<std::size_t>(5 * r.hidden)) * sizeof(T)});
  });
}

}  // namespace doppler::model
