#pragma once

#include <array>
#include <memory>
#include <vector>

#include "doppler/learn/nn/layers.h"
#include "doppler/learn/placeto/placeto_input.h"

namespace doppler {

struct PlacetoShape {
  std::size_t width = 32;
  std::size_t rounds = 4;
  bool per_step = false;  // Messages are passed again after every step.
};

// Placeto's network. With T_v = ReLU(W₂ ReLU(W₁ features_v + b₁) + b₂ + visited_v · t) and, in each direction, the same
// weights for every round of messages:
//   x_v ← T_v + ReLU(H [ mean over neighbours u of s_u | the same, over neighbours, of those on v's device ])
//   s_u = ReLU(S x_u + b)
// A node without neighbours hears 0, as H has no bias. When node v is visited, device d has the logit
//   o · ReLU(own_v + (4m/n) Σ_{u ≠ v on d} part_{relation of u to v}(u) + D f_{v,d} + c) + k · [v is on d now]
// with part_r(u) and own_v linear maps of what u is in both directions, f what is known of the op on the device, m
// devices and n nodes. Nothing in it depends on the number or the names of devices.
template <typename Real>
class PlacetoNetwork {
 public:
  using Matrix = typename Tape<Real>::Matrix;

  PlacetoNetwork(const PlacetoShape& shape, Rng rng);
  PlacetoNetwork(const PlacetoNetwork&) = delete;

  const PlacetoShape& shape() const { return shape_; }
  Parameters<Real>& parameters() { return parameters_; }
  const Parameters<Real>& parameters() const { return parameters_; }
  // The map from what a node is in a direction to its parts, width × (relation, width).
  typename Parameters<Real>::Slot part_weights(Direction direction) const { return part_[index(direction)]; }

  // T of every node that was not visited, then of the same nodes visited.
  Matrix nodes(Tape<Real>& tape, const Real* features, std::size_t count);
  Matrix say(Tape<Real>& tape, Direction direction, Matrix x);
  // What nodes become by messages along the edges; `own` are their rows of T.
  struct Edges {
    std::span<const std::uint32_t> from, to;
    std::span<const Real> share;  // of what is heard
    std::span<const Real> near;   // the same where both ends are on one device, 0 elsewhere
  };
  Matrix hear(Tape<Real>& tape, Direction direction, Matrix own, Matrix said, const Edges& edges);
  // A row for every relation of every node.
  Matrix parts(Tape<Real>& tape, Direction direction, Matrix x);

  // The arrays that a tape refers to until it is cleared.
  struct Kept {
    PlacetoStand stand;
    std::vector<Real> features;
    std::array<std::vector<std::vector<Real>>, kDirections.size()> share, near;  // by direction and round
  };
  // All nodes in an episode, by direction. Where messages are passed once, these are the parts, and decisions play no
  // part. Where they are passed at every step, these are all versions of all nodes in the episode that takes the
  // decisions: as there are many more of them than questions, parts are found of their sums.
  std::array<Matrix, kDirections.size()> embed(Tape<Real>& tape, const PlacetoInput& input,
                                               std::span<const DeviceId> decisions, Kept& kept);
  // Says for the edges of a round at a moment whether both ends are on one device: share is what `near` is then.
  static void find_near(const PlacetoInput::Round& round, std::size_t moment, std::span<const DeviceId> device,
                        std::span<Real> near);

  // The steps whose logits are asked for.
  struct Question {
    std::size_t rows = 0;  // A row for every step and device.
    std::array<std::vector<std::uint32_t>, kDirections.size()> from;
    std::vector<std::uint32_t> to;
    std::vector<Real> weight, features;

    void clear();
    // `features` are by device.
    void add(const PlacetoInput& input, const PlacetoStand& stand, std::uint32_t step, std::span<const float> features);

   private:
    friend class PlacetoNetwork;
    bool of_versions = false;  // Rows of `from` are versions of nodes, and sums are by relation.
  };
  // A row for every step and device. The question stays until the tape is cleared. `nodes` is what embed() gives, or
  // where messages are passed once the sum of both directions.
  Matrix logits(Tape<Real>& tape, std::span<const Matrix> nodes, const Question& question);

 private:
  using Layer = std::unique_ptr<Linear<Real>>;
  using Slot = typename Parameters<Real>::Slot;
  static std::size_t index(Direction direction) { return static_cast<std::size_t>(direction); }

  PlacetoShape shape_;
  Parameters<Real> parameters_;
  std::array<Layer, 2> input_;
  Slot visited_;
  std::array<Layer, kDirections.size()> say_;
  std::array<Slot, kDirections.size()> hear_, part_;
  Layer device_;
  Slot output_, keep_;
};

}  // namespace doppler
