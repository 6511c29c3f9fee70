#include <numeric>

#include "doppler/program/onnx/rewrite/passes.h"
#include "doppler/program/onnx/rewrite/patterns.h"

namespace doppler::program {
namespace {

// Returns the Transpose of the last two dimensions that writes the tensor for this one reader.
std::optional<NodeIndex> flip_of(const Rewriting& graph, const std::string& tensor) {
  const auto transpose = graph.sole_writer(tensor, "Transpose");
  const auto shape = graph.shape(tensor);
  if (!transpose || !shape || shape->size() < 2 || graph.is_static(tensor)) return std::nullopt;
  std::vector<Index> flipped(shape->size());
  std::iota(flipped.begin(), flipped.end(), 0);
  std::swap(flipped[flipped.size() - 1], flipped[flipped.size() - 2]);
  return order_of(graph.node(*transpose), shape->size()) == flipped ? transpose : std::nullopt;
}

}  // namespace

std::size_t fuse_matmul(Rewriting& graph) {
  std::size_t found = 0;
  for (NodeIndex index = 0; index < graph.size(); ++index) {
    if (!graph.is(index, "MatMul")) continue;
    const onnx::NodeProto& product = graph.node(index);
    if (graph.element(product.output(0)) != onnx::TensorProto::FLOAT) continue;
    std::vector<NodeIndex> nodes;
    std::vector<std::string> inputs(product.input().begin(), product.input().end());
    std::vector<onnx::AttributeProto> attributes;
    for (const int side : {0, 1})
      if (const auto flip = flip_of(graph, product.input(side))) {
        nodes.push_back(*flip);
        inputs[static_cast<std::size_t>(side)] = graph.node(*flip).input(0);
        attributes.push_back(int_value(side == 0 ? "transA" : "transB", 1));
      }
    nodes.push_back(index);
    if (const auto next = graph.only_reader(index))
      if (const auto scaled = scaled_by(graph, *next)) {
        nodes.push_back(*next);
        attributes.push_back(float_value("alpha", static_cast<float>(scaled->scalar)));
      }
    if (nodes.size() == 1) continue;
    const onnx::NodeProto& last = graph.node(nodes.back());
    onnx::NodeProto fused = make_node("doppler.MatMul", inputs, {last.output(0)}, last.name());
    for (onnx::AttributeProto& attribute : attributes) *fused.add_attribute() = std::move(attribute);
    graph.fuse(nodes, std::move(fused));
    ++found;
  }
  return found;
}

}  // namespace doppler::program
