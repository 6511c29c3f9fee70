#include <algorithm>

#include "doppler/program/onnx/rewrite/passes.h"
#include "doppler/program/onnx/rewrite/patterns.h"

namespace doppler::program {
namespace {

constexpr std::size_t kRank = 4;  // [batch, heads, rows, depth]
using Order = std::vector<Index>;
const Order kAsIs = {0, 1, 2, 3};

// A tensor of rank 4 that is read through scales and transposes.
struct Operand {
  std::string tensor;
  Order order = kAsIs;  // of its dimensions, as a Transpose has it
  double scale = 1;
  std::vector<NodeIndex> nodes = {};
};

Operand seen_through(const Rewriting& graph, std::string tensor, NodeIndex reader) {
  Operand operand{std::move(tensor)};
  while (true) {
    const auto writer = graph.writer(operand.tensor);
    if (!writer || graph.only_reader(*writer) != reader ||
        graph.shape(operand.tensor).value_or(Shape()).size() != kRank)
      return operand;
    const onnx::NodeProto& node = graph.node(*writer);
    if (graph.is(*writer, "Transpose")) {
      const Order inner = order_of(node, kRank);
      for (Index& axis : operand.order) axis = inner[static_cast<std::size_t>(axis)];
    } else if (const auto scaled = scaled_by(graph, *writer)) {
      operand.scale *= scaled->scalar;
      operand.tensor = scaled->tensor;
      operand.nodes.push_back(*writer);
      reader = *writer;
      continue;
    } else {
      return operand;
    }
    operand.tensor = node.input(0);
    operand.nodes.push_back(*writer);
    reader = *writer;
  }
}

// What comes before the Softmax: scale · Q · Kᵀ + mask.
struct Scores {
  Operand q, k;
  std::string mask;
  double scale = 1;
  std::vector<NodeIndex> nodes = {};
};

std::optional<Scores> scores_of(const Rewriting& graph, std::string tensor, NodeIndex reader) {
  Scores scores;
  std::optional<NodeIndex> node = graph.writer(tensor);
  const auto reaches = [&] { return node && graph.only_reader(*node) == reader; };
  if (reaches() && graph.is(*node, "Add")) {
    const onnx::NodeProto& sum = graph.node(*node);
    // The mask is the side that no product or scale writes.
    const auto writer = graph.writer(sum.input(0));
    const bool first = writer && graph.only_reader(*writer) == node &&
                       (graph.is(*writer, "MatMul") || scaled_by(graph, *writer).has_value());
    scores.mask = sum.input(first ? 1 : 0);
    tensor = sum.input(first ? 0 : 1);
    scores.nodes.push_back(*node);
    reader = *node;
    node = graph.writer(tensor);
  }
  if (reaches())
    if (const auto scaled = scaled_by(graph, *node)) {
      scores.scale = scaled->scalar;
      scores.nodes.push_back(*node);
      reader = *node;
      node = graph.writer(scaled->tensor);
    }
  if (!reaches() || !graph.is(*node, "MatMul")) return std::nullopt;
  const onnx::NodeProto& product = graph.node(*node);
  scores.nodes.push_back(*node);
  scores.q = seen_through(graph, product.input(0), *node);
  scores.k = seen_through(graph, product.input(1), *node);
  scores.scale *= scores.q.scale * scores.k.scale;
  std::swap(scores.k.order[2], scores.k.order[3]);  // the product reads Kᵀ
  return scores;
}

bool fuse_one(Rewriting& graph, NodeIndex softmax) {
  const onnx::NodeProto& node = graph.node(softmax);
  const auto shape = graph.shape(node.output(0));
  const Index axis = int_attribute(node, "axis", graph.opset() < 13 ? 1 : -1);
  if (!shape || shape->size() != kRank || (axis != -1 && axis != 3) ||
      graph.element(node.output(0)) != onnx::TensorProto::FLOAT)
    return false;
  const auto product = graph.only_reader(softmax);
  if (!product || !graph.is(*product, "MatMul") || graph.node(*product).input(0) != node.output(0)) return false;
  const auto scores = scores_of(graph, node.input(0), softmax);
  if (!scores) return false;
  const Operand v = seen_through(graph, graph.node(*product).input(1), *product);
  for (const Operand* operand : {&scores->q, &scores->k, &v})
    if (graph.shape(operand->tensor).value_or(Shape()).size() != kRank) return false;
  if (v.scale != 1) return false;
  std::vector<NodeIndex> nodes = scores->nodes;
  for (const Operand* operand : {&scores->q, &scores->k, &v})
    nodes.insert(nodes.end(), operand->nodes.begin(), operand->nodes.end());
  nodes.insert(nodes.end(), {softmax, *product});
  Order order = kAsIs;
  NodeIndex last = *product;
  if (const auto next = graph.only_reader(last); next && graph.is(*next, "Transpose")) {
    last = *next;
    order = order_of(graph.node(last), kRank);
    nodes.push_back(last);
  }
  onnx::NodeProto fused = make_node("doppler.Attention", {scores->q.tensor, scores->k.tensor, v.tensor, scores->mask},
                                    {graph.node(last).output(0)}, graph.node(last).name());
  *fused.add_attribute() = float_value("scale", static_cast<float>(scores->scale));
  const auto add_order = [&](const char* name, const Order& of) {
    if (of != kAsIs) *fused.add_attribute() = ints_value(name, of);
  };
  add_order("perm_q", scores->q.order);
  add_order("perm_k", scores->k.order);
  add_order("perm_v", v.order);
  add_order("perm_out", order);
  graph.fuse(nodes, std::move(fused));
  return true;
}

}  // namespace

std::size_t fuse_attention(Rewriting& graph) {
  std::size_t found = 0;
  for (NodeIndex index = 0; index < graph.size(); ++index)
    if (graph.is(index, "Softmax") && fuse_one(graph, index)) ++found;
  return found;
}

}  // namespace doppler::program
