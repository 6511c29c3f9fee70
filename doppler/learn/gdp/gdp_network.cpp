#include "doppler/learn/gdp/gdp_network.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/error.h"

namespace doppler {
template <typename Real>
GdpNetwork<Real>::GdpNetwork(const GdpShape& shape, Rng rng)
    : shape_(shape), parameters_(rng), input_(parameters_, kUnitColumns, shape.width), norm_(parameters_, shape.width) {
  for (std::size_t i = 0; i < shape.layers; ++i) graph_.emplace_back(parameters_, shape.width);
  for (std::size_t i = 0; i < shape.layers; ++i) placer_.emplace_back(parameters_, shape.width);
  devices_ = parameters_.weights(kMostDevices, shape.width);
  bias_ = parameters_.constants(1, kMostDevices, 0);
  speed_ = parameters_.constants(1, 1, 0);
}

template <typename Real>
auto GdpNetwork<Real>::aggregate(Tape<Real>& tape, const Neighbours& layer, const GdpInput& input, Matrix h) const
    -> Matrix {
  const std::size_t count = tape.row_count(h);
  const Matrix producers = tape.message_maxima(tape.sigmoid(layer.producers(tape, h)), input.from(), input.to(), count);
  const Matrix consumers = tape.message_maxima(tape.sigmoid(layer.consumers(tape, h)), input.to(), input.from(), count);
  return tape.sum(h, tape.relu(layer.joint(tape, tape.beside(tape.beside(h, producers), consumers))));
}

template <typename Real>
auto GdpNetwork<Real>::attend(Tape<Real>& tape, const Attention& layer, Matrix x) -> Matrix {
  const std::size_t count = tape.row_count(x), segment = shape_.segment, d = shape_.width / shape_.heads();
  const Matrix w_key = parameters_.on(tape, layer.key), w_value = parameters_.on(tape, layer.value);
  const Matrix query =
      tape.scaled(tape.product(x, parameters_.on(tape, layer.query)), 1 / std::sqrt(static_cast<Real>(d)));
  const Matrix key = tape.product(x, w_key), value = tape.product(x, w_value);
  // Of the memory the weights learn, but not what wrote it. The last segment is nobody's memory.
  const std::size_t remembered = (count - 1) / segment * segment;
  const Matrix memory = tape.row_range(tape.detached(x), 0, remembered);
  const Matrix old_key = tape.product(memory, w_key), old_value = tape.product(memory, w_value);
  const auto head_of = [&](Matrix a, std::size_t begin, std::size_t rows, std::size_t head) {
    return tape.columns(tape.row_range(a, begin, rows), head * d, d);
  };
  std::vector<Matrix> segments;
  for (std::size_t begin = 0; begin < count; begin += segment) {
    const std::size_t rows = std::min(segment, count - begin);
    Matrix heads = {};
    for (std::size_t head = 0; head < shape_.heads(); ++head) {
      Matrix keys = head_of(key, begin, rows, head), values = head_of(value, begin, rows, head);
      if (begin > 0) {
        keys = tape.above(head_of(old_key, begin - segment, segment, head), keys);
        values = tape.above(head_of(old_value, begin - segment, segment, head), values);
      }
      const Matrix weights = tape.softmax(tape.product_transposed(head_of(query, begin, rows, head), keys));
      const Matrix sums = tape.product(weights, values);
      heads = head == 0 ? sums : tape.beside(heads, sums);
    }
    segments.push_back(heads);
  }
  const Matrix seen = layer.norm(tape, tape.sum(x, layer.output(tape, tape.joined(segments))));
  return layer.last_norm(tape, tape.sum(seen, layer.result(tape, tape.relu(layer.hidden(tape, seen)))));
}

template <typename Real>
auto GdpNetwork<Real>::logits(Tape<Real>& tape, const GdpInput& input) -> Matrix {
  const std::size_t count = input.units().count(), devices = input.units().device_count();
  DOPPLER_CHECK(devices <= kMostDevices, "{} devices", devices);
  features_.assign(input.features().begin(), input.features().end());
  speeds_.assign(input.speeds().begin(), input.speeds().end());
  to_mean_.assign(count, 0);
  mean_weights_.assign(count, -1 / static_cast<Real>(count));
  Matrix x = tape.relu(input_(tape, tape.constant(count, kUnitColumns, features_.data())));
  for (const Neighbours& layer : graph_) x = aggregate(tape, layer, input, x);
  for (const Attention& layer : placer_) x = attend(tape, layer, x);
  const Matrix minus_mean = tape.row_sums(x, to_mean_, 1, mean_weights_);
  const Matrix centred = norm_(tape, tape.sum(x, minus_mean));
  const Matrix vectors = tape.row_range(parameters_.on(tape, devices_), 0, devices);
  const Matrix faster = tape.product(tape.constant(speeds_.size(), 1, speeds_.data()), parameters_.on(tape, speed_));
  const Matrix bias = tape.columns(parameters_.on(tape, bias_), 0, devices);
  return tape.sum(tape.sum(tape.product_transposed(centred, vectors), tape.reshaped(faster, count, devices)), bias);
}

template class GdpNetwork<float>;
template class GdpNetwork<double>;

}  // namespace doppler
