#pragma once

#include "doppler/learn/doppler/network.h"

namespace doppler {

// The default network. h = relu(x W), then `layers` times
//   h ← LayerNorm(h + relu([h, mean over producers, mean over consumers, mean over the graph] W)),
// then current, placed and producer as linear maps of h and score = 20 tanh(MLP(h) / 20).
//
// Forward and backward are written out, because libtorch takes half a second to load. The tests hold them against
// libtorch's autograd.
struct GnnShape {
  std::size_t width = kBlock;  // A multiple of kBlock.
  std::size_t layers = 2;
  bool per_step = false;       // It looks at the progress of the episode too.
  std::size_t candidates = 0;  // Network::candidates().
};

template <typename Real>
class Gnn final : public Network<Real> {
 public:
  Gnn(const GnnShape& shape, Rng rng);

  std::string architecture() const override;
  DeviceFeatureSet device_features() const override { return DeviceFeatureSet::improved; }
  HeadShape head_shape() const override { return {.width = shape_.width}; }
  bool per_step() const override { return shape_.per_step; }
  std::size_t candidates() const override { return shape_.candidates; }
  void embed(const PolicyInput& input, std::span<const Real> progress, Embedding<Real>& embedding) override;
  void backward(const Embedding<Real>& gradient) override;

 private:
  // The offsets of the blocks of parameters.
  struct Linear {
    std::size_t weight, bias;
  };
  struct Layer {
    std::size_t own, producers, consumers, graph, bias;  // Width × width each, and width.
    std::size_t gain, shift;                             // Those of LayerNorm.
  };
  struct Activations {
    std::vector<Real> input;                 // What h was before the layer.
    std::vector<Real> producers, consumers;  // The means over the neighbours.
    std::vector<Real> graph;                 // The mean over the graph, one row.
    std::vector<Real> message;               // The result of relu.
    std::vector<Real> normal;                // The normalised sum, before gain and shift.
    std::vector<Real> scale;                 // 1 / standard deviation, per op.
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

  // What the last embed() left for backward().
  const PolicyInput* input_ = nullptr;
  std::size_t ops_ = 0;
  std::vector<Real> x_, h_;  // Op × inputs_, and op × width.
  std::vector<Real> first_;  // What h was after the first map.
  std::vector<Activations> activations_;
  std::vector<Real> hidden_, raw_score_;
  std::vector<Real> gradient_, message_gradient_, neighbour_gradient_, row_gradient_, work_;
};

}  // namespace doppler
