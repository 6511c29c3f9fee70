#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "doppler/learn/doppler/episode_state.h"
#include "doppler/learn/hsdag/hsdag_input.h"
#include "doppler/learn/nn/layers.h"

namespace doppler {

// How the clusters that the parsing network makes become placements.
enum class HsdagVariant : std::uint8_t {
  published,  // As the published code does it: it merges until nothing is left to merge, which is one cluster.
  flat,       // The same, repaired: merging stops in time, and each cluster gets one device.
  fine,  // Coarse to fine: clusters choose devices, then the groups in them, then the units, drawn to their parent's.
};

struct HsdagShape {
  HsdagVariant variant = HsdagVariant::flat;
  std::size_t width = 32;
  std::size_t steps = 16;  // Placements that one walk through the features makes; 1: features stay as they are.
  bool metis = false;      // Clusters of groups are METIS's, and nothing of them is learned.
  Colocation groups = Colocation::chain;  // Which units join first.
};

// The Graph Parsing Network with its placer. On each level, with h the embeddings of its nodes and Â the normalised
// adjacency without directions:
//   g₁ = LN(h + GCN₂(h)), g₂ = LN(h + GCN₁(h)), GCN one or two layers ReLU(Â X W + b)
//   score of edge uv = σ(w · ReLU(LN(W (g₁ᵤ ⊙ g₁ᵥ) + b)))
// and clusters by dominant edges (level_graph.h). A cluster's embedding is post(Σ pre(g₂)) times the mean score of the
// edges inside it, which is how the scores get a gradient; pre and post are LN(x + W x + b). The logit of a device is
// the dot product of a query, an MLP of the node's embedding, and the device's own vector, plus a learned multiple of
// how much faster than the mean it is.
//
// In the fine variant the logits of a unit u have one more term, wish_u · x_{u,d}, with x the device features of
// DOPPLER (episode_state.h) in the episode as it is when u has its turn, and wish_u = W g₂ᵤ + b. It treats all devices
// alike, whatever their numbers.
template <typename Real>
class HsdagNetwork {
 public:
  using Matrix = typename Tape<Real>::Matrix;

  // More devices than this have no vector.
  static constexpr DeviceId kMostDevices = 64;

  HsdagNetwork(const HsdagShape& shape, Rng rng);
  HsdagNetwork(const HsdagNetwork&) = delete;

  const HsdagShape& shape() const { return shape_; }
  Parameters<Real>& parameters() { return parameters_; }
  const Parameters<Real>& parameters() const { return parameters_; }
  // The weights that read one column of the features.
  typename Parameters<Real>::Slot input_weights() const { return input_[0]->weights(); }
  // How strongly a node is drawn to the device of its parent.
  typename Parameters<Real>::Slot attraction() const { return attraction_; }
  // The weights and the bias that wishes come from.
  std::array<typename Parameters<Real>::Slot, 2> wish_weights() const { return {wish_->weights(), wish_->bias()}; }

  // One level of a parse, fine to coarse. Its nodes decide where `logits` says so: by row a node, by column a device.
  struct Level {
    std::uint32_t node_count = 0;
    std::vector<std::uint32_t> parent = {};  // In the next level; empty in the last.
    bool decides = false;
    Matrix logits = {};
    Matrix wishes = {};  // Fine variant, first level: by row a unit, by column a device feature.
  };
  struct Parse {
    std::vector<Level> levels;
    Matrix output = {};  // Of the last level's nodes: what is added to the features of their members.
  };

  // Parses the problem and writes everything on the tape. `features` are those of the first level, by node; both they
  // and the result stay until clear(). `noise` perturbs which edges are dominant, by Gumbel's distribution, so that
  // other clusters are tried too; 0 is no noise.
  const Parse& parse(Tape<Real>& tape, const HsdagInput& input, const std::vector<Real>& features, std::uint64_t noise);
  // The level that a parse begins with.
  const HsdagInput::Level& first_level(const HsdagInput& input) const {
    return shape_.variant == HsdagVariant::fine ? input.units() : input.groups();
  }
  // Forgets all parses; the tape must be cleared too.
  void clear() { kept_.clear(); }

 private:
  // ReLU(Â X W + b).
  using Layer = std::unique_ptr<Linear<Real>>;
  using Norm = std::unique_ptr<LayerNorm<Real>>;
  // The arrays that the tape refers to.
  struct Kept {
    Parse parse;
    std::deque<std::vector<std::uint32_t>> indices;
    std::deque<std::vector<Real>> reals;
  };
  struct Adjacency {
    std::span<const std::uint32_t> from, to;
    std::span<const Real> weight;
  };

  Adjacency normalised(Kept& kept, const LevelGraph& graph, std::span<const LevelGraph::Edge> undirected) const;
  Matrix convolve(Tape<Real>& tape, const Layer& layer, const Adjacency& adjacency, Matrix x);
  Matrix residual(Tape<Real>& tape, const Layer& layer, const Norm& norm, Matrix x);
  Matrix scores(Tape<Real>& tape, Kept& kept, std::span<const LevelGraph::Edge> edges, Matrix g);
  Matrix pooled(Tape<Real>& tape, Kept& kept, const Grouping& grouping, Matrix g,
                std::span<const LevelGraph::Edge> edges, const Matrix* scores);
  Matrix logits(Tape<Real>& tape, Kept& kept, const Layer& hidden, const Layer& query, Matrix x,
                std::span<const float> speeds, DeviceId devices);

  HsdagShape shape_;
  Parameters<Real> parameters_;
  Layer input_[2];
  Norm input_norm_[2];
  Layer twice_[2], once_;
  Norm twice_norm_, once_norm_;
  Layer score_;
  Norm score_norm_;
  typename Parameters<Real>::Slot score_weights_;
  Layer pre_, post_;
  Norm pre_norm_, post_norm_;
  Layer output_[2];
  Layer placer_[2], below_[2], wish_;
  typename Parameters<Real>::Slot devices_, speed_, attraction_;
  std::deque<Kept> kept_;
};

}  // namespace doppler
