#include <algorithm>
#include <limits>

#include "doppler/program/onnx/rewrite/passes.h"
#include "doppler/program/onnx/rewrite/patterns.h"

namespace doppler::program {
namespace {

// A product with what follows it, in the order of the fused form: bias, residual, activation.
struct Epilogue {
  std::vector<NodeIndex> nodes;  // the product first
  std::string bias, residual, activation;
  std::vector<float> parameters;
};

bool is_convolution(const Rewriting& graph, NodeIndex node) { return graph.is(node, "Conv"); }

// A Gemm that is A · B + bias, B transposed or not.
bool is_plain_gemm(const Rewriting& graph, NodeIndex node) {
  if (!graph.is(node, "Gemm")) return false;
  const onnx::NodeProto& gemm = graph.node(node);
  if (float_attribute(gemm, "alpha", 1) != 1 || float_attribute(gemm, "beta", 1) != 1 ||
      int_attribute(gemm, "transA", 0) != 0)
    return false;
  if (gemm.input_size() < 3 || gemm.input(2).empty()) return true;
  const auto bias = graph.shape(gemm.input(2)), out = graph.shape(gemm.output(0));
  return bias && out && bias->size() == 1 && bias->back() == out->back();
}

// Returns the bias that the node adds along the last dimension of `tensor`; empty if it is none.
std::string bias_of(const Rewriting& graph, NodeIndex node, const std::string& tensor) {
  if (!graph.is(node, "Add")) return {};
  const std::string& bias = other_input(graph.node(node), tensor);
  const auto shape = graph.shape(bias), out = graph.shape(tensor);
  const bool fits =
      graph.is_static(bias) && shape && out && shape->size() == 1 && out->size() > 1 && shape->back() == out->back();
  return fits ? bias : std::string();
}

// Returns what the node adds that has the same shape; empty if it is nothing such.
std::string residual_of(const Rewriting& graph, NodeIndex node, const std::string& tensor) {
  if (!graph.is(node, "Add")) return {};
  const std::string& other = other_input(graph.node(node), tensor);
  const bool fits = other != tensor && !graph.is_static(other) && graph.shape(other) == graph.shape(tensor) &&
                    graph.shape(tensor).has_value();
  return fits ? other : std::string();
}

std::optional<std::vector<float>> clip_bounds(const Rewriting& graph, const onnx::NodeProto& clip) {
  std::vector<float> bounds = {float_attribute(clip, "min", std::numeric_limits<float>::lowest()),
                               float_attribute(clip, "max", std::numeric_limits<float>::max())};
  for (int slot = 1; slot < clip.input_size(); ++slot) {
    if (clip.input(slot).empty()) continue;
    const auto bound = graph.scalar(clip.input(slot));
    if (!bound) return std::nullopt;
    bounds[static_cast<std::size_t>(slot) - 1] = static_cast<float>(*bound);
  }
  return bounds;
}

void take_activation(const Rewriting& graph, NodeIndex node, Epilogue& epilogue) {
  const onnx::NodeProto& proto = graph.node(node);
  if (!graph.alive(node) || proto.output_size() != 1) return;
  const std::string name = operator_name(proto);
  if (name == "Relu" || name == "Sigmoid" || name == "Tanh" || name == "HardSwish") {
    epilogue.activation = name;
  } else if (name == "doppler.Gelu" || name == "doppler.Silu") {
    epilogue.activation = proto.op_type();
  } else if (name == "Clip") {
    const auto bounds = clip_bounds(graph, proto);
    if (!bounds) return;
    epilogue.activation = name;
    epilogue.parameters = *bounds;
  } else if (name == "HardSigmoid") {
    epilogue.activation = name;
    epilogue.parameters = {float_attribute(proto, "alpha", 0.2F), float_attribute(proto, "beta", 0.5F)};
  } else if (name == "LeakyRelu" || name == "Elu") {
    epilogue.activation = name;
    epilogue.parameters = {float_attribute(proto, "alpha", name == "Elu" ? 1.0F : 0.01F)};
  } else {
    return;
  }
  epilogue.nodes.push_back(node);
}

Epilogue epilogue_of(const Rewriting& graph, NodeIndex product) {
  Epilogue epilogue{.nodes = {product}, .bias = {}, .residual = {}, .activation = {}, .parameters = {}};
  const onnx::NodeProto& node = graph.node(product);
  if (!graph.is(product, "MatMul") && !graph.is(product, "doppler.MatMul") && node.input_size() > 2)
    epilogue.bias = node.input(2);
  const auto next = [&] { return graph.only_reader(epilogue.nodes.back()); };
  const auto tensor = [&] { return graph.node(epilogue.nodes.back()).output(0); };
  if (epilogue.bias.empty() && !is_convolution(graph, product))
    if (const auto adds = next()) {
      epilogue.bias = bias_of(graph, *adds, tensor());
      if (!epilogue.bias.empty()) epilogue.nodes.push_back(*adds);
    }
  if (const auto adds = next()) {
    epilogue.residual = residual_of(graph, *adds, tensor());
    if (!epilogue.residual.empty()) epilogue.nodes.push_back(*adds);
  }
  if (const auto activates = next()) take_activation(graph, *activates, epilogue);
  return epilogue;
}

}  // namespace

std::size_t fuse_epilogue(Rewriting& graph) {
  std::size_t found = 0;
  for (NodeIndex index = 0; index < graph.size(); ++index) {
    const bool convolution = is_convolution(graph, index);
    if (!convolution && !is_plain_gemm(graph, index) && !graph.is(index, "MatMul") &&
        !graph.is(index, "doppler.MatMul"))
      continue;
    const onnx::NodeProto& product = graph.node(index);
    if (graph.element(product.output(0)) != onnx::TensorProto::FLOAT) continue;
    const Epilogue epilogue = epilogue_of(graph, index);
    if (epilogue.nodes.size() == 1) continue;
    onnx::NodeProto fused = make_node(convolution ? "doppler.Conv" : "doppler.MatMul",
                                      {product.input(0), product.input(1), epilogue.bias, epilogue.residual},
                                      {graph.node(epilogue.nodes.back()).output(0)}, product.name());
    for (const onnx::AttributeProto& attribute : product.attribute())
      if (convolution || attribute.name().starts_with("trans") || attribute.name() == "alpha")
        *fused.add_attribute() = attribute;
    if (!epilogue.activation.empty()) *fused.add_attribute() = string_value("activation", epilogue.activation);
    if (!epilogue.parameters.empty()) *fused.add_attribute() = floats_value("activation_params", epilogue.parameters);
    graph.fuse(epilogue.nodes, std::move(fused));
    ++found;
  }
  return found;
}

}  // namespace doppler::program
