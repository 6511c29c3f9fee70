#pragma once

#include "doppler/learn/doppler/network.h"

namespace doppler {

// The default network. h = relu(x W), then `layers` times
//   h ← LayerNorm(h + relu([h, mean over producers, mean over consumers, mean over the graph] W)),
// then current, placed and producer as linear maps of h and score = 10 tanh(MLP(h) / 10).
//
// Forward and backward are written out: 229 ops take 0.6 ms here (`learn_bench`); libtorch took 2 to 4 ms for less
// in a throw-away program, and half a second to load. The tests hold it against libtorch's autograd.
struct GnnShape {
  std::size_t width = kBlock;  // a multiple of kBlock
  std::size_t layers = 2;
  bool per_step = false;  // looks at the progress of the episode too
};

template <typename Real>
class Gnn final : public Network<Real> {
 public:
  Gnn(const GnnShape& shape, Rng rng);

  std::string architecture() const override;
  DeviceFeatureSet device_features() const override { return DeviceFeatureSet::improved; }
  HeadShape head_shape() const override { return {.width = shape_.width}; }
  bool per_step() const override { return shape_.per_step; }
  void embed(const PolicyInput& input, std::span<const Real> progress, Embedding<Real>& embedding) override;
  void backward(const Embedding<Real>& gradient) override;

 private:
  // Offsets of the parameter blocks.
  struct Linear {
    std::size_t weight, bias;
  };
  struct Layer {
    std::size_t own, producers, consumers, graph, bias;  // width × width each, and width
    std::size_t gain, shift;                             // of LayerNorm
  };
  struct Activations {
    std::vector<Real> input;                 // h before the layer
    std::vector<Real> producers, consumers;  // means
    std::vector<Real> graph;                 // mean, width
    std::vector<Real> message;               // relu(…)
    std::vector<Real> normal;                // normalised, before gain and shift
    std::vector<Real> scale;                 // 1 / standard deviation per op
  };

  std::size_t allocate(std::size_t size, double bound, Rng& rng);
  Linear linear(std::size_t inputs, std::size_t outputs, Rng& rng);
  void forward_layer(std::size_t index, std::vector<Real>& h);
  void backward_layer(std::size_t index, std::vector<Real>& gradient);
  void forward_score(Embedding<Real>& embedding);
  void backward_score(const Embedding<Real>& gradient);

  GnnShape shape_;
  std::size_t inputs_;
  Linear in_, current_, placed_, producer_, score_hidden_, score_;
  std::vector<Layer> layers_;

  // Of the last embed().
  const PolicyInput* input_ = nullptr;
  std::size_t ops_ = 0;
  std::vector<Real> x_, h_;  // op × inputs_, op × width
  std::vector<Real> first_;  // h after the first map
  std::vector<Activations> activations_;
  std::vector<Real> hidden_, raw_score_;
  std::vector<Real> gradient_, message_gradient_, neighbour_gradient_, row_gradient_, work_;
};

}  // namespace doppler
