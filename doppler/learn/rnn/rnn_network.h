#pragma once

#include "doppler/learn/nn/layers.h"
#include "doppler/learn/rnn/rnn_input.h"

namespace doppler {

struct RnnShape {
  std::size_t width = 64;
  std::size_t groups = 64;  // At most so many groups of ops are placed.
};

// The recurrent placer (Mirhoseini et al., 2017), a sequence-to-sequence model. An LSTM reads the features of the
// groups in topological order; its states are e_1 … e_n. A second one begins where the first ended and emits a device
// for each group in turn: at step t, with y the device before,
//   input  embedding(y) W + e_t A
//   attention  a = softmax(h_t Kᵀ / √width) K, where K = E W_k
//   logits  D [h_t | a] + s · how much faster than the mean each device is
// Two things differ from the published placer. Attention is by dot products (Luong et al., 2015), which need no tanh
// for every pair of groups and element. And the decoder is told with e_t whose turn it is, instead of having to count;
// on gdp_ffnn that made no difference.
template <typename Real>
class RnnNetwork {
 public:
  using Matrix = typename Tape<Real>::Matrix;
  using State = typename Lstm<Real>::State;

  // More devices than this have no vector.
  static constexpr DeviceId kMostDevices = 64;

  RnnNetwork(const RnnShape& shape, Rng rng);
  RnnNetwork(const RnnNetwork&) = delete;

  const RnnShape& shape() const { return shape_; }
  Parameters<Real>& parameters() { return parameters_; }
  const Parameters<Real>& parameters() const { return parameters_; }
  // The weights that read the features.
  typename Parameters<Real>::Slot input_weights() const { return encoder_.weights(); }

  // What decoders read, all of it on the encoder's tape.
  struct Encoding {
    Matrix keys = {};
    Matrix turns = {};    // What each group adds to the decoder's gates.
    Matrix devices = {};  // What each device adds to them if it was the last; the last row is for the first group.
    Matrix outputs = {};  // D.
    Matrix faster = {};
    State state = {};
  };
  // Reads the problem. One at a time: it keeps what the tape refers to.
  Encoding encode(Tape<Real>& tape, const RnnInput& input);

  // Emits a device for each group by decide(group, matrix of the logits on `tape`). The pass is on a tape of its own,
  // so that several episodes read one encoding: its backward() adds to the gradients on the encoder's tape.
  template <typename Decide>
  void decode(Tape<Real>& tape, Tape<Real>& encoder, const Encoding& encoding, Decide decide) const;

 private:
  RnnShape shape_;
  Parameters<Real> parameters_;
  Lstm<Real> encoder_, decoder_;
  typename Parameters<Real>::Slot turn_, key_, embeddings_, outputs_, speed_;
  std::vector<Real> features_, speeds_, zeros_;  // What the tape refers to.
};

template <typename Real>
template <typename Decide>
void RnnNetwork<Real>::decode(Tape<Real>& tape, Tape<Real>& encoder, const Encoding& encoding, Decide decide) const {
  const auto imported = [&](Matrix a) {
    return tape.parameter(encoder.row_count(a), encoder.column_count(a), encoder.value(a).data(),
                          encoder.gradient(a).data());
  };
  const Matrix keys = imported(encoding.keys), turns = imported(encoding.turns), devices = imported(encoding.devices),
               outputs = imported(encoding.outputs), faster = imported(encoding.faster);
  const Real scale = 1 / std::sqrt(static_cast<Real>(shape_.width));
  State state = {imported(encoding.state.h), imported(encoding.state.c)};
  std::size_t last = kMostDevices;
  for (std::size_t group = 0; group < tape.row_count(keys); ++group) {
    state = decoder_.step(tape, tape.sum(tape.row_range(turns, group, 1), tape.row_range(devices, last, 1)), state);
    const Matrix weights = tape.softmax(tape.scaled(tape.product_transposed(state.h, keys), scale));
    const Matrix seen = tape.beside(state.h, tape.product(weights, keys));
    last = decide(group, tape.sum(tape.product_transposed(seen, outputs), tape.row_range(faster, group, 1)));
  }
}

}  // namespace doppler
