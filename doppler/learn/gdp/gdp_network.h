#pragma once

#include <deque>

#include "doppler/learn/gdp/gdp_input.h"
#include "doppler/learn/nn/dense.h"
#include "doppler/learn/nn/layers.h"

namespace doppler {

struct GdpShape {
  std::size_t width = 64;
  std::size_t layers = 2;    // Of the graph network, and of the placer.
  std::size_t segment = 64;  // Units that attend to one another; each also to the segment before.

  std::size_t heads() const { return width / kBlock; }
};

// The network of GDP (Zhou et al., 2019). A graph network, GraphSAGE with max-pooling, layer by layer:
//   p_v = max over producers u of σ(W_p h_u + b_p), c_v = max over consumers u of σ(W_c h_u + b_c)
//   h_v ← h_v + ReLU(W [h_v | p_v | c_v] + b)
// with a maximum of nothing being 0. A placer of Transformer-XL's layers over the units in topological order, cut into
// segments; with X a segment's rows and M those of the segment before, through which no gradient flows:
//   A = softmax((X W_q) ([M | X] W_k)ᵀ / √d) ([M | X] W_v), for each head of width d
//   X ← LN(X + A W_o + b_o), X ← LN(X + W₂ ReLU(W₁ X + b₁) + b₂)
// There is no positional term: units have their place among their features. M are the inputs of the same layer, so a
// layer computes all its segments at once. The logits of the devices are
//   D LN(x − x̄) + b + s · how much faster than the mean each one is,
// with x̄ the mean of all units. Maxima of sigmoids and attention leave units nearly alike: without the sum in the
// graph network and without x̄ an untrained policy wants the same device for all of them, and hardly learns otherwise.
template <typename Real>
class GdpNetwork {
 public:
  using Matrix = typename Tape<Real>::Matrix;

  // More devices than this have no vector.
  static constexpr DeviceId kMostDevices = 64;

  GdpNetwork(const GdpShape& shape, Rng rng);
  GdpNetwork(const GdpNetwork&) = delete;

  const GdpShape& shape() const { return shape_; }
  Parameters<Real>& parameters() { return parameters_; }
  const Parameters<Real>& parameters() const { return parameters_; }
  // The weights that read the features.
  typename Parameters<Real>::Slot input_weights() const { return input_.weights(); }

  // Writes a pass on the tape and returns a logit for every unit, by row, and device. The input must outlive the tape's
  // next clear(), and so must this pass: one at a time.
  Matrix logits(Tape<Real>& tape, const GdpInput& input);

 private:
  struct Neighbours {
    Neighbours(Parameters<Real>& parameters, std::size_t width)
        : producers(parameters, width, width),
          consumers(parameters, width, width),
          joint(parameters, 3 * width, width) {}
    Linear<Real> producers, consumers, joint;
  };
  struct Attention {
    Attention(Parameters<Real>& parameters, std::size_t width)
        : query(parameters.weights(width, width)),
          key(parameters.weights(width, width)),
          value(parameters.weights(width, width)),
          output(parameters, width, width),
          norm(parameters, width),
          hidden(parameters, width, 4 * width),
          result(parameters, 4 * width, width),
          last_norm(parameters, width) {}
    typename Parameters<Real>::Slot query, key, value;
    Linear<Real> output;
    LayerNorm<Real> norm;
    Linear<Real> hidden, result;
    LayerNorm<Real> last_norm;
  };

  Matrix aggregate(Tape<Real>& tape, const Neighbours& layer, const GdpInput& input, Matrix h) const;
  Matrix attend(Tape<Real>& tape, const Attention& layer, Matrix x);

  GdpShape shape_;
  Parameters<Real> parameters_;
  Linear<Real> input_;
  LayerNorm<Real> norm_;
  std::deque<Neighbours> graph_;
  std::deque<Attention> placer_;
  typename Parameters<Real>::Slot devices_, bias_, speed_;
  // What the tape refers to.
  std::vector<Real> features_, speeds_, mean_weights_;
  std::vector<std::uint32_t> to_mean_;
};

}  // namespace doppler
