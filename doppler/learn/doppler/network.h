#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "doppler/base/rng.h"
#include "doppler/learn/doppler/episode_state.h"
#include "doppler/learn/nn/dense.h"

namespace doppler {

// What a network computes once per parameter version and graph, and what the heads then need at every step:
//   SEL: the logit of op v is score[v];
//   PLC: the logit of device d for op v is
//        output · φ( current[v] + (4m/n) Σ_{u on d} placed[u] + mean_{u input of v on d} producer[u] + D(x_d) )
// with φ the leaky ReLU (slope 0.1), m devices, n ops, and D a linear map of the device features x_d or, with a hidden
// layer, two with φ between them. Projecting before summing makes the state of a device one vector.
template <typename Real>
struct Embedding {
  std::vector<Real> current, placed, producer;  // Op × width.
  std::vector<Real> score;                      // One per op.

  void resize(std::size_t ops, std::size_t width);
  void fill_zero();
};

inline constexpr double kLeak = 0.1;

// The parameters of the device head, wherever the network keeps them; a gradient has the same shape.
struct HeadShape {
  std::size_t width = kBlock;
  std::size_t features = kDeviceFeatureCount;
  std::size_t hidden = 0;  // The width of D's hidden layer; 0 if D is one linear map.

  std::size_t size() const { return first_size() + hidden * width + width; }
  // The parts lie one after the other, row-major: features × (hidden or width), hidden × width, width.
  std::size_t first_size() const { return features * (hidden > 0 ? hidden : width); }
  std::size_t second_offset() const { return first_size(); }
  std::size_t output_offset() const { return first_size() + hidden * width; }
};

// Parameters, and the map from a graph to its embedding. Nothing in it depends on the number of ops and devices.
template <typename Real>
class Network {
 public:
  virtual ~Network() = default;

  virtual std::string architecture() const = 0;
  virtual DeviceFeatureSet device_features() const = 0;
  virtual HeadShape head_shape() const = 0;
  // True if it looks at the progress of the episode, so that every step needs an embedding of its own.
  virtual bool per_step() const { return false; }
  // How many ready ops one joint policy looks at (joint_rollout.h); 0 if SEL and PLC decide one after the other.
  virtual std::size_t candidates() const { return 0; }

  // Says what looks at the clock in embed() and backward(), which then throw OutOfTime; nothing does at first.
  void set_watch(Watch* watch) { watch_ = watch; }

  std::span<Real> parameters() { return parameters_; }
  std::span<const Real> parameters() const { return parameters_; }
  std::span<Real> gradients() { return gradients_; }
  // The head is the end of the parameters.
  const Real* head() const { return parameters_.data() + parameters_.size() - head_shape().size(); }
  Real* head_gradient() { return gradients_.data() + gradients_.size() - head_shape().size(); }

  // Says whether embed() keeps what backward() needs, as it does at first. It takes three times the memory.
  void set_keeping(bool keeps) { keeps_ = keeps; }

  // Embeds the graph. `progress` holds kProgressFeatures numbers per op if per_step(), and is empty otherwise.
  virtual void embed(const PolicyInput& input, std::span<const Real> progress, Embedding<Real>& embedding) = 0;
  // Adds the gradient of the last embed() to gradients(), given that of its result.
  virtual void backward(const Embedding<Real>& gradient) = 0;

 protected:
  // Looks at the clock, if anything does, before a stretch of so many multiplications that cannot be interrupted.
  void spend(std::uint64_t multiplications) {
    constexpr std::uint64_t kPerStep = 64;
    if (watch_ != nullptr) watch_->step(multiplications / kPerStep);
  }

  std::vector<Real> parameters_, gradients_;
  bool keeps_ = true;

 private:
  Watch* watch_ = nullptr;
};

// What a network that is asked at every step is told about every op: is it placed, its end over the horizon, is it
// ready.
inline constexpr std::size_t kProgressFeatures = 3;

}  // namespace doppler
