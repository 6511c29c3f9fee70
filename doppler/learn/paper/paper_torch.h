#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "doppler/learn/doppler/network.h"

namespace doppler {

// What paper.cpp, which does without libtorch, and the module doppler_torch say to each other.

inline constexpr std::size_t kPaperWidth = 128, kPaperHead = 64, kPaperRounds = 6;
inline constexpr std::size_t kPaperNodeFeatures = 5;
inline constexpr std::size_t kPaperEdgeFeatures = 2;  // The cost of the tensor, and the direction.

// A matrix of parameters, row-major, inputs × outputs.
struct PaperBlock {
  std::size_t rows, columns;
  std::size_t size() const { return rows * columns; }
};
// The blocks lie in this order: for each of SEL and PLC its GNN, then its head; last the device head (HeadShape).
inline constexpr auto kPaperGnn = std::to_array<PaperBlock>({
    {kPaperNodeFeatures, kPaperWidth},
    {1, kPaperWidth},  // The first map.
    {kPaperEdgeFeatures, kPaperWidth},
    {1, kPaperWidth},  // The edge network's first layer.
    {kPaperWidth, kPaperWidth* kPaperWidth},
    {1, kPaperWidth* kPaperWidth},  // Its second layer.
    {1, kPaperWidth},               // What is added to the messages.
    {kPaperWidth, 3 * kPaperWidth},
    {kPaperWidth, 3 * kPaperWidth},
    {1, 3 * kPaperWidth},
    {1, 3 * kPaperWidth},  // The GRU, for the input and for the state: reset, update, new.
});
inline constexpr auto kPaperSel = std::to_array<PaperBlock>({
    {kPaperNodeFeatures, kPaperWidth},
    {1, kPaperWidth},  // The map to z.
    {4 * kPaperWidth, kPaperHead},
    {1, kPaperHead},  // The map of z, H, the path to the exit and the path to the entry.
    {1, kPaperHead},
    {1, 1},  // The score.
});
inline constexpr auto kPaperPlc = std::to_array<PaperBlock>({
    {kPaperNodeFeatures, kPaperWidth},
    {1, kPaperWidth},  // The map to z.
    {3 * kPaperWidth, kPaperHead},
    {1, kPaperHead},  // The map of z, H, and the sum of H on the device; that of its features is in the device head.
});

// A graph as the network sees it.
struct PaperGraph {
  std::size_t ops = 0;
  std::vector<float> features;  // Op × kPaperNodeFeatures.
  // The tensors that are read by anyone, in ascending order of their value.
  std::vector<float> value;
  std::vector<std::int64_t> producer;
  std::vector<std::int64_t> edge_tensor, edge_consumer;
  std::vector<std::int64_t> order;  // A topological order.
  // The next op on the longest path to an exit, and from an entry; -1 if there is none.
  std::vector<std::int64_t> to_exit, to_entry;
};

class PaperTorch {
 public:
  virtual ~PaperTorch() = default;
  // The embedding has its size already; `producer` is left alone.
  virtual void embed(const PaperGraph& graph, Embedding<float>& embedding) = 0;
  virtual void backward(const Embedding<float>& gradient) = 0;
};

// What the module exports. The arrays must stay where they are. Null if they are not of the size that the module knows.
inline constexpr const char* kMakePaperEngine = "doppler_make_paper_engine";
using MakePaperEngine = PaperTorch* (*)(float* parameters, float* gradients, std::size_t size);

}  // namespace doppler
