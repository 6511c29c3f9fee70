#include "doppler/learn/rnn/rnn_network.h"

#include "doppler/base/error.h"

namespace doppler {

template <typename Real>
RnnNetwork<Real>::RnnNetwork(const RnnShape& shape, Rng rng)
    : shape_(shape),
      parameters_(rng),
      encoder_(parameters_, rnn_columns(shape.groups), shape.width),
      decoder_(parameters_, shape.width, shape.width),
      turn_(parameters_.weights(shape.width, 4 * shape.width)),
      key_(parameters_.weights(shape.width, shape.width)),
      embeddings_(parameters_.weights(kMostDevices + 1, shape.width)),
      outputs_(parameters_.weights(kMostDevices, 2 * shape.width)),
      speed_(parameters_.constants(1, 1, 0)) {}

template <typename Real>
auto RnnNetwork<Real>::encode(Tape<Real>& tape, const RnnInput& input) -> Encoding {
  const std::size_t groups = input.group_count(), devices = input.device_count();
  DOPPLER_CHECK(devices <= kMostDevices, "{} devices", devices);
  features_.assign(input.features().begin(), input.features().end());
  speeds_.assign(input.speeds().begin(), input.speeds().end());
  zeros_.assign(shape_.width, 0);
  const Matrix gates = encoder_.gates(tape, tape.constant(groups, rnn_columns(shape_.groups), features_.data()));
  const Matrix zero = tape.constant(1, shape_.width, zeros_.data());
  State state = {zero, zero};
  std::vector<Matrix> rows;
  for (std::size_t group = 0; group < groups; ++group) {
    state = encoder_.step(tape, tape.row_range(gates, group, 1), state);
    rows.push_back(state.h);
  }
  const Matrix states = tape.joined(std::move(rows));
  Encoding result;
  result.state = state;
  result.keys = tape.product(states, parameters_.on(tape, key_));
  result.turns = tape.product(states, parameters_.on(tape, turn_));
  result.devices = decoder_.gates(tape, parameters_.on(tape, embeddings_));
  result.outputs = tape.row_range(parameters_.on(tape, outputs_), 0, devices);
  const Matrix faster = tape.product(tape.constant(speeds_.size(), 1, speeds_.data()), parameters_.on(tape, speed_));
  result.faster = tape.reshaped(faster, groups, devices);
  return result;
}

template class RnnNetwork<float>;
template class RnnNetwork<double>;

}  // namespace doppler
