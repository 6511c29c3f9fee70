#include "doppler/program/onnx/rewrite/passes.h"
#include "doppler/program/onnx/rewrite/patterns.h"

namespace doppler::program {
namespace {

// √(mean of squares of `squared` + ε), as Sqrt(Add(ReduceMean(Pow(x, 2)), ε)) or with Mul(x, x).
struct Root {
  std::string squared;
  float epsilon = 0;
  std::vector<NodeIndex> nodes;  // first to last
};

std::optional<std::string> squared_tensor(const Rewriting& graph, NodeIndex node) {
  const onnx::NodeProto& proto = graph.node(node);
  if (graph.is(node, "Mul") && proto.input(0) == proto.input(1)) return proto.input(0);
  if (!graph.is(node, "Pow")) return std::nullopt;
  const auto power = with_scalar(graph, node);
  return power && !power->scalar_first && power->scalar == 2 ? std::optional(power->tensor) : std::nullopt;
}

std::optional<Root> root_mean_square(const Rewriting& graph, const std::string& tensor) {
  const auto root = graph.sole_writer(tensor, "Sqrt");
  if (!root) return std::nullopt;
  const auto sum = graph.sole_writer(graph.node(*root).input(0), "Add");
  if (!sum) return std::nullopt;
  const auto epsilon = with_scalar(graph, *sum);
  if (!epsilon) return std::nullopt;
  const auto mean = graph.sole_writer(epsilon->tensor, "ReduceMean");
  if (!mean || only_axis(graph, graph.node(*mean)) != -1 || int_attribute(graph.node(*mean), "keepdims", 1) == 0)
    return std::nullopt;
  const std::string& squares = graph.node(*mean).input(0);
  const auto square = graph.writer(squares);
  if (!square || graph.only_reader(*square) != mean) return std::nullopt;
  const auto squared = squared_tensor(graph, *square);
  if (!squared) return std::nullopt;
  return Root{*squared, static_cast<float>(epsilon->scalar), {*square, *mean, *sum, *root}};
}

// Returns the node's static input of one dimension that is as long as the last one of the other; empty if it has none.
std::string vector_of(const Rewriting& graph, const onnx::NodeProto& node, const std::string& tensor) {
  const std::string& vector = other_input(node, tensor);
  const auto shape = graph.shape(vector), whole = graph.shape(tensor);
  const bool fits = shape && whole && shape->size() == 1 && !whole->empty() && (*shape)[0] == whole->back();
  return fits && graph.is_static(vector) ? vector : std::string();
}

struct Scaled {
  NodeIndex node = 0;
  std::string vector;
};
// Returns the Mul or Add of a vector that is all that reads the node's output.
std::optional<Scaled> next_with_vector(const Rewriting& graph, NodeIndex node, std::string_view op) {
  const auto next = graph.only_reader(node);
  if (!next || !graph.is(*next, op)) return std::nullopt;
  std::string vector = vector_of(graph, graph.node(*next), graph.node(node).output(0));
  return vector.empty() ? std::nullopt : std::optional(Scaled{*next, std::move(vector)});
}

// (x - mean x) / √(mean (x - mean x)² + ε) · scale + shift
bool fuse_centred(Rewriting& graph, NodeIndex quotient, const Root& root) {
  const onnx::NodeProto& divide = graph.node(quotient);
  const auto centre = graph.writer(divide.input(0));
  if (!centre || root.squared != divide.input(0) || !graph.is(*centre, "Sub")) return false;
  // Some exporters write the difference once, and others once for either use.
  if (graph.readers(divide.input(0)).size() != (graph.is(root.nodes[0], "Mul") ? 3 : 2)) return false;
  const onnx::NodeProto& difference = graph.node(*centre);
  const std::string x = difference.input(0);
  const auto mean = graph.sole_writer(difference.input(1), "ReduceMean");
  if (!mean || graph.node(*mean).input(0) != x || only_axis(graph, graph.node(*mean)) != -1) return false;
  const auto scale = next_with_vector(graph, quotient, "Mul");
  if (!scale) return false;
  const auto shift = next_with_vector(graph, scale->node, "Add");
  const NodeIndex last = shift ? shift->node : scale->node;
  std::vector<std::string> inputs = {x, scale->vector};
  if (shift) inputs.push_back(shift->vector);
  onnx::NodeProto fused =
      make_node("LayerNormalization", inputs, {graph.node(last).output(0)}, graph.node(last).name());
  *fused.add_attribute() = int_value("axis", -1);
  *fused.add_attribute() = float_value("epsilon", root.epsilon);
  std::vector<NodeIndex> nodes = {*mean, *centre};
  nodes.insert(nodes.end(), root.nodes.begin(), root.nodes.end());
  nodes.insert(nodes.end(), {quotient, scale->node});
  if (shift) nodes.push_back(last);
  graph.fuse(nodes, std::move(fused));
  return true;
}

// x / √(mean x² + ε) · scale
bool fuse_uncentred(Rewriting& graph, NodeIndex quotient, const Root& root) {
  const std::string x = graph.node(quotient).input(0);
  const auto scale = next_with_vector(graph, quotient, "Mul");
  if (root.squared != x || !scale) return false;
  onnx::NodeProto fused = make_node("SimplifiedLayerNormalization", {x, scale->vector},
                                    {graph.node(scale->node).output(0)}, graph.node(scale->node).name());
  *fused.add_attribute() = int_value("axis", -1);
  *fused.add_attribute() = float_value("epsilon", root.epsilon);
  std::vector<NodeIndex> nodes = root.nodes;
  nodes.insert(nodes.end(), {quotient, scale->node});
  graph.fuse(nodes, std::move(fused));
  return true;
}

}  // namespace

std::size_t fuse_layer_norm(Rewriting& graph) {
  std::size_t found = 0;
  for (NodeIndex index = 0; index < graph.size(); ++index) {
    if (!graph.is(index, "Div")) continue;
    const auto root = root_mean_square(graph, graph.node(index).input(1));
    if (root && (fuse_centred(graph, index, *root) || fuse_uncentred(graph, index, *root))) ++found;
  }
  return found;
}

}  // namespace doppler::program
