#include "doppler/learn/paper/paper.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "doppler/base/error.h"
#include "doppler/base/module.h"
#include "doppler/graph/levels.h"
#include "doppler/learn/doppler/doppler_policy.h"
#include "doppler/learn/paper/paper_torch.h"

namespace doppler {
namespace {

// The graph.

// Brings every column to mean 0 and standard deviation 1; a constant column becomes 0.
void standardise(const std::vector<double>& from, std::size_t columns, std::vector<float>& to) {
  const std::size_t rows = from.size() / columns;
  to.resize(from.size());
  for (std::size_t k = 0; k < columns; ++k) {
    double mean = 0, square = 0;
    for (std::size_t row = 0; row < rows; ++row) mean += from[row * columns + k] / static_cast<double>(rows);
    for (std::size_t row = 0; row < rows; ++row)
      square += std::pow(from[row * columns + k] - mean, 2) / static_cast<double>(rows);
    const double scale = square > 1e-20 * mean * mean ? 1 / std::sqrt(square) : 0;
    for (std::size_t row = 0; row < rows; ++row)
      to[row * columns + k] = static_cast<float>((from[row * columns + k] - mean) * scale);
  }
}

// Writes the time of every op, its b-level, t-level, transfers of its inputs and to its consumers, and the critical
// paths.
void describe_ops(const PolicyInput& input, PaperGraph& graph) {
  const Costs& costs = input.problem().costs();
  const Levels level = levels(costs.graph(), costs.mean_times(), costs.mean_transfers());
  std::vector<double> features;
  features.reserve(graph.ops * kPaperNodeFeatures);
  graph.to_exit.assign(graph.ops, -1);
  graph.to_entry.assign(graph.ops, -1);
  for (OpId op = 0; op < graph.ops; ++op) {
    double in = 0, out = 0, longest = -1;
    for (const PolicyInput::Edge& edge : input.producers(op)) {
      const Seconds transfer = costs.mean_transfer(edge.tensor);
      in += transfer;
      const double length = level.top[edge.op] + costs.mean_time(edge.op) + transfer;
      if (length > longest) graph.to_entry[op] = edge.op;
      longest = std::max(longest, length);
    }
    longest = -1;
    for (const PolicyInput::Edge& edge : input.consumers(op)) {
      const Seconds transfer = costs.mean_transfer(edge.tensor);
      out += transfer;
      const double length = transfer + level.bottom[edge.op];
      if (length > longest) graph.to_exit[op] = edge.op;
      longest = std::max(longest, length);
    }
    for (const double value : {costs.mean_time(op), level.bottom[op], level.top[op], in, out})
      features.push_back(value);
  }
  standardise(features, kPaperNodeFeatures, graph.features);
  const auto order = costs.graph().topological_order();
  graph.order.assign(order.begin(), order.end());
}

void describe_edges(const PolicyInput& input, PaperGraph& graph) {
  const Costs& costs = input.problem().costs();
  const Graph& source = costs.graph();
  std::vector<TensorId> tensors;
  std::vector<double> edge_values;
  for (TensorId tensor = 0; tensor < source.tensor_count(); ++tensor)
    if (!source.consumers(tensor).empty()) tensors.push_back(tensor);
  std::stable_sort(tensors.begin(), tensors.end(),
                   [&](TensorId a, TensorId b) { return costs.mean_transfer(a) < costs.mean_transfer(b); });
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    graph.producer.push_back(source.producer(tensors[i]));
    for (const OpId consumer : source.consumers(tensors[i])) {
      graph.edge_tensor.push_back(static_cast<std::int64_t>(i));
      graph.edge_consumer.push_back(consumer);
      edge_values.push_back(costs.mean_transfer(tensors[i]));
    }
  }
  std::vector<float> of_edge;
  standardise(edge_values, 1, of_edge);
  graph.value.resize(tensors.size());
  for (std::size_t i = 0; i < of_edge.size(); ++i)
    graph.value[static_cast<std::size_t>(graph.edge_tensor[i])] = of_edge[i];
}

PaperGraph describe(const PolicyInput& input) {
  PaperGraph graph;
  graph.ops = input.op_count();
  describe_ops(input, graph);
  describe_edges(input, graph);
  return graph;
}

// The network.

class PaperNetwork final : public Network<float> {
 public:
  PaperNetwork(Rng rng, const std::filesystem::path& directory) {
    const Module module{"doppler_torch", "--architecture paper",
                        "a build that found libtorch (Debian: libtorch-dev; tools/install_deps test)"};
    const auto make = reinterpret_cast<MakePaperEngine>(open_module(module, directory, kMakePaperEngine));
    add_gnn(rng);
    add_head(kPaperSel, rng);
    add_gnn(rng);
    add_plc_heads(rng);
    gradients_.assign(parameters_.size(), 0.0F);
    engine_.reset(make(parameters_.data(), gradients_.data(), parameters_.size()));
    DOPPLER_CHECK(engine_ != nullptr, "doppler_torch is of another build");
  }

  std::string architecture() const override { return "paper"; }
  DeviceFeatureSet device_features() const override { return DeviceFeatureSet::paper; }
  HeadShape head_shape() const override {
    return {.width = kPaperHead, .features = kPaperDeviceFeatures.size(), .hidden = kPaperWidth};
  }
  void embed(const PolicyInput& input, std::span<const float> progress, Embedding<float>& embedding) override {
    DOPPLER_CHECK(progress.empty(), "{} progress features", progress.size());
    embedding.resize(input.op_count(), kPaperHead);
    std::fill(embedding.producer.begin(), embedding.producer.end(), 0.0F);
    graph_ = describe(input);
    engine_->embed(graph_, embedding);
  }
  void backward(const Embedding<float>& gradient) override { engine_->backward(gradient); }

 private:
  void add_uniform(std::size_t size, double bound, Rng& rng) {
    for (std::size_t i = 0; i < size; ++i) parameters_.push_back(static_cast<float>(rng.uniform(-bound, bound)));
  }

  // Layers begin as PyTorch's do: uniform within 1 / √inputs, also the biases. The bias of the messages is 0.
  void add_gnn(Rng& rng) {
    for (std::size_t i = 0; i < kPaperGnn.size(); ++i) {
      const std::size_t inputs[] = {
          kPaperNodeFeatures, kPaperNodeFeatures, kPaperEdgeFeatures, kPaperEdgeFeatures, kPaperWidth, kPaperWidth, 0,
          kPaperWidth,        kPaperWidth,        kPaperWidth,        kPaperWidth};
      static_assert(std::size(inputs) == kPaperGnn.size());
      add_uniform(kPaperGnn[i].size(), inputs[i] > 0 ? 1 / std::sqrt(static_cast<double>(inputs[i])) : 0, rng);
    }
  }

  // Heads begin with orthogonal maps and biases of zero: matrix, bias, matrix, bias, …
  void add_head(std::span<const PaperBlock> blocks, Rng& rng) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (i % 2 == 1) {
        add_uniform(blocks[i].size(), 0, rng);
      } else {
        const auto values = orthogonal(blocks[i].rows, blocks[i].columns, rng);
        parameters_.insert(parameters_.end(), values.begin(), values.end());
      }
    }
  }

  // The published 512 × 64 map of [device, z, H, sum] begins orthogonal as a whole; its first quarter is in the device
  // head, the rest in kPaperPlc.
  void add_plc_heads(Rng& rng) {
    const auto whole = orthogonal(4 * kPaperWidth, kPaperHead, rng);
    const auto middle = whole.begin() + static_cast<std::ptrdiff_t>(kPaperWidth * kPaperHead);
    add_head(std::span(kPaperPlc).first(2), rng);
    parameters_.insert(parameters_.end(), middle, whole.end());
    add_uniform(kPaperPlc[3].size(), 0, rng);
    const auto first = orthogonal(kPaperDeviceFeatures.size(), kPaperWidth, rng);
    const auto output = orthogonal(1, kPaperHead, rng);
    parameters_.insert(parameters_.end(), first.begin(), first.end());
    parameters_.insert(parameters_.end(), whole.begin(), middle);
    parameters_.insert(parameters_.end(), output.begin(), output.end());
  }

  // Makes rows or columns orthonormal, whichever are fewer, by the method of Gram and Schmidt on normal vectors.
  static std::vector<float> orthogonal(std::size_t rows, std::size_t columns, Rng& rng) {
    const std::size_t count = std::min(rows, columns), length = std::max(rows, columns);
    std::vector<double> vectors(count * length);
    for (std::size_t i = 0; i < count; ++i) {
      double* own = vectors.data() + i * length;
      for (std::size_t k = 0; k < length; ++k) own[k] = rng.normal();
      for (std::size_t j = 0; j < i; ++j) {
        const double* other = vectors.data() + j * length;
        const double along = std::inner_product(own, own + length, other, 0.0);
        for (std::size_t k = 0; k < length; ++k) own[k] -= along * other[k];
      }
      const double norm = std::sqrt(std::inner_product(own, own + length, own, 0.0));
      for (std::size_t k = 0; k < length; ++k) own[k] /= norm;
    }
    std::vector<float> result(rows * columns);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t k = 0; k < columns; ++k)
        result[i * columns + k] =
            static_cast<float>(rows <= columns ? vectors[i * length + k] : vectors[k * length + i]);
    return result;
  }

  PaperGraph graph_;
  std::unique_ptr<PaperTorch> engine_;
};

}  // namespace

std::unique_ptr<Network<float>> make_paper_network(Rng rng, const std::filesystem::path& directory) {
  return std::make_unique<PaperNetwork>(rng, directory);
}

std::unique_ptr<Policy> make_paper_policy(const std::string& architecture, Rng rng) {
  if (architecture != "paper") return nullptr;
  return std::make_unique<DopplerPolicy>(make_paper_network(rng, library_directory()));
}

}  // namespace doppler
