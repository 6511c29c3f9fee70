#include "doppler/program/onnx/rewrite/patterns.h"

#include <cmath>

namespace doppler::program {

std::optional<WithScalar> with_scalar(const Rewriting& graph, NodeIndex node) {
  const onnx::NodeProto& proto = graph.node(node);
  if (proto.input_size() != 2) return std::nullopt;
  for (const int slot : {1, 0})
    if (const auto value = graph.scalar(proto.input(slot)); value && !graph.is_static(proto.input(1 - slot))) {
      // A scalar of a higher rank than the tensor's would add dimensions.
      const auto shape = graph.shape(proto.input(1 - slot)), added = graph.shape(proto.input(slot));
      if (!shape || !added || added->size() > shape->size()) return std::nullopt;
      return WithScalar{proto.input(1 - slot), *value, slot == 0};
    }
  return std::nullopt;
}

bool nearly(double a, double b) { return std::abs(a - b) <= 1e-4 * std::max(1.0, std::abs(b)); }

std::optional<WithScalar> scaled_by(const Rewriting& graph, NodeIndex node) {
  const bool divides = graph.is(node, "Div");
  if (!divides && !graph.is(node, "Mul")) return std::nullopt;
  auto found = with_scalar(graph, node);
  if (!found || (divides && (found->scalar_first || found->scalar == 0))) return std::nullopt;
  if (divides) found->scalar = 1 / found->scalar;
  return found;
}

const std::string& other_input(const onnx::NodeProto& node, const std::string& one) {
  return node.input(node.input(0) == one ? 1 : 0);
}

std::optional<Index> only_axis(const Rewriting& graph, const onnx::NodeProto& node) {
  std::optional<std::vector<Index>> axes = ints_attribute(node, "axes");
  if (!axes && node.input_size() > 1) axes = graph.integers(node.input(1));
  const auto shape = graph.shape(node.input(0));
  if (!axes || axes->size() != 1 || !shape) return std::nullopt;
  const Index axis = (*axes)[0];
  return axis < 0 ? axis : axis - static_cast<Index>(shape->size());
}

std::vector<Index> order_of(const onnx::NodeProto& transpose, std::size_t rank) {
  if (auto order = ints_attribute(transpose, "perm"); order && order->size() == rank) return std::move(*order);
  std::vector<Index> reversed;
  for (std::size_t i = rank; i > 0; --i) reversed.push_back(static_cast<Index>(i) - 1);
  return reversed;
}

}  // namespace doppler::program
