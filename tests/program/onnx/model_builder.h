#pragma once

#include <initializer_list>
#include <onnx/onnx_pb.h>
#include <string>
#include <variant>
#include <vector>

namespace doppler::program {

// Builds small models through protobuf, as exporters do.
class ModelBuilder {
 public:
  using Dim = std::variant<int, const char*>;  // a size or a symbol
  using Names = std::vector<std::string>;
  static constexpr int kFloat = onnx::TensorProto::FLOAT;

  explicit ModelBuilder(int opset = 13) {
    model_.set_ir_version(8);
    import("", opset);
  }

  ModelBuilder& import(const std::string& domain, int version) {
    auto* opset = model_.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(version);
    return *this;
  }
  ModelBuilder& input(const std::string& name, const std::vector<Dim>& dims, int element = kFloat) {
    describe(*graph().add_input(), name, dims, element);
    return *this;
  }
  ModelBuilder& output(const std::string& name) {
    graph().add_output()->set_name(name);
    return *this;
  }
  // A tensor of zeros.
  ModelBuilder& weight(const std::string& name, const std::vector<int>& dims, int element = kFloat, int bytes = 4) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(element);
    std::size_t count = 1;
    for (const int size : dims) tensor->add_dims(size), count *= static_cast<std::size_t>(size);
    tensor->set_raw_data(std::string(count * static_cast<std::size_t>(bytes), '\0'));
    return *this;
  }
  ModelBuilder& integers(const std::string& name, const std::vector<int>& values) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->add_dims(static_cast<int>(values.size()));
    for (const int value : values) tensor->add_int64_data(value);
    return *this;
  }
  onnx::NodeProto& node(const std::string& type, const Names& inputs, const Names& outputs,
                        const std::string& name = {}) {
    return add_node(graph(), type, inputs, outputs, name);
  }
  ModelBuilder& node_of(const std::string& domain, const std::string& type, const Names& inputs, const Names& outputs) {
    node(type, inputs, outputs, outputs[0]).set_domain(domain);
    return *this;
  }

  static onnx::NodeProto& add_node(onnx::GraphProto& graph, const std::string& type, const Names& inputs,
                                   const Names& outputs, const std::string& name = {}) {
    auto* node = graph.add_node();
    node->set_op_type(type);
    node->set_name(name.empty() && !outputs.empty() ? outputs[0] : name);
    for (const std::string& input : inputs) node->add_input(input);
    for (const std::string& output : outputs) node->add_output(output);
    return *node;
  }
  static void describe(onnx::ValueInfoProto& info, const std::string& name, const std::vector<Dim>& dims,
                       int element = kFloat) {
    info.set_name(name);
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(element);
    tensor->mutable_shape();
    for (const Dim& dim : dims) {
      auto* added = tensor->mutable_shape()->add_dim();
      if (const int* size = std::get_if<int>(&dim))
        added->set_dim_value(*size);
      else
        added->set_dim_param(std::get<const char*>(dim));
    }
  }

  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  onnx::ModelProto& model() { return model_; }
  std::string bytes() const { return model_.SerializeAsString(); }

 private:
  onnx::ModelProto model_;
};

inline void set_int(onnx::NodeProto& node, const std::string& name, int value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}
inline void set_ints(onnx::NodeProto& node, const std::string& name, std::initializer_list<int> values) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (const int value : values) attribute->add_ints(value);
}
inline void set_string(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::STRING);
  attribute->set_s(value);
}
inline onnx::GraphProto& set_graph(onnx::NodeProto& node, const std::string& name) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::GRAPH);
  return *attribute->mutable_g();
}

// An encoder as PyTorch writes it: shapes computed in the graph, layer norms and gelu in pieces. 59 nodes a layer.
std::string transformer_export(int layers, int batch, int positions, int width, int heads);

}  // namespace doppler::program
