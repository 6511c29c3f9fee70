#include <algorithm>
#include <cmath>
#include <numbers>

#include "doppler/program/onnx/rewrite/passes.h"
#include "doppler/program/onnx/rewrite/patterns.h"

namespace doppler::program {
namespace {

// Returns the nodes that compute 1 + erf(x / √2), first to last, and x; `sum` is the last.
struct ErrorFunction {
  std::string x;
  std::vector<NodeIndex> nodes;
};
std::optional<ErrorFunction> one_plus_erf(const Rewriting& graph, NodeIndex sum) {
  if (!graph.is(sum, "Add")) return std::nullopt;
  const auto one = with_scalar(graph, sum);
  if (!one || one->scalar != 1) return std::nullopt;
  const auto erf = graph.sole_writer(one->tensor, "Erf");
  if (!erf) return std::nullopt;
  const auto scaling = graph.writer(graph.node(*erf).input(0));
  if (!scaling || graph.only_reader(*scaling) != erf) return std::nullopt;
  const auto scaled = scaled_by(graph, *scaling);
  if (!scaled || !nearly(scaled->scalar, 1 / std::numbers::sqrt2)) return std::nullopt;
  return ErrorFunction{scaled->tensor, {*scaling, *erf, sum}};
}

// GELU is half of x · (1 + erf(x / √2)); exporters halve the product, x, or the sum.
bool fuse_gelu(Rewriting& graph, NodeIndex sum) {
  auto erf = one_plus_erf(graph, sum);
  if (!erf) return false;
  const auto halved = [&](NodeIndex node) -> std::optional<std::string> {
    const auto scaled = scaled_by(graph, node);
    return scaled && scaled->scalar == 0.5 ? std::optional(scaled->tensor) : std::nullopt;
  };
  std::vector<NodeIndex>& nodes = erf->nodes;
  std::optional<NodeIndex> next = graph.only_reader(sum);
  bool half = false;
  if (next && halved(*next)) {  // x · (half of the sum)
    nodes.push_back(*next);
    half = true;
    next = graph.only_reader(*next);
  }
  if (!next || !graph.is(*next, "Mul")) return false;
  const std::string& factor = other_input(graph.node(*next), graph.node(nodes.back()).output(0));
  if (factor != erf->x) {  // (half of x) · the sum
    const auto writer = graph.writer(factor);
    if (half || !writer || graph.only_reader(*writer) != next || halved(*writer) != erf->x) return false;
    nodes.push_back(*writer);
    half = true;
  }
  nodes.push_back(*next);
  if (!half) {
    const auto last = graph.only_reader(*next);
    if (!last || !halved(*last)) return false;
    nodes.push_back(*last);
  }
  const onnx::NodeProto& last = graph.node(nodes.back());
  graph.fuse(nodes, make_node("doppler.Gelu", {erf->x}, {last.output(0)}, last.name()));
  return true;
}

// x · sigmoid(x) and x · hard sigmoid(x).
bool fuse_gate(Rewriting& graph, NodeIndex gate) {
  const bool soft = graph.is(gate, "Sigmoid");
  if (!soft && !graph.is(gate, "HardSigmoid")) return false;
  const onnx::NodeProto& sigmoid = graph.node(gate);
  if (!soft && (!nearly(float_attribute(sigmoid, "alpha", 0.2F), 1.0 / 6) ||
                !nearly(float_attribute(sigmoid, "beta", 0.5F), 0.5)))
    return false;
  const auto product = graph.only_reader(gate);
  if (!product || !graph.is(*product, "Mul") || graph.node(*product).input_size() != 2) return false;
  const onnx::NodeProto& last = graph.node(*product);
  if (other_input(last, sigmoid.output(0)) != sigmoid.input(0)) return false;
  graph.fuse({gate, *product},
             make_node(soft ? "doppler.Silu" : "HardSwish", {sigmoid.input(0)}, {last.output(0)}, last.name()));
  return true;
}

}  // namespace

std::size_t fuse_activation(Rewriting& graph) {
  std::size_t found = 0;
  for (NodeIndex index = 0; index < graph.size(); ++index)
    if (graph.alive(index) && (fuse_gelu(graph, index) || fuse_gate(graph, index))) ++found;
  return found;
}

}  // namespace doppler::program
