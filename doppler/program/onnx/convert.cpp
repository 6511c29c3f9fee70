#include "doppler/program/onnx/convert.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/program/onnx/constant.h"
#include "doppler/program/onnx/reading.h"

namespace doppler::model {
namespace {

template <typename T, typename Field>
void copy_field(const Field& field, Tensor& tensor) {
  T* out = tensor.as<T>();
  const auto count = static_cast<int>(tensor.type.count());
  for (int i = 0; i < count; ++i) out[i] = static_cast<T>(field.Get(i));
}

template <typename Field>
void check_field(const Field& field, const Tensor& tensor, const std::string& what) {
  if (field.size() < tensor.type.count())
    throw InputError(
        fmt::format("{}: found {} elements of data; required {}", what, field.size(), tensor.type.count()));
}

// Small integers, booleans and the bits of half-precision numbers share a field.
void copy_fields(const onnx::TensorProto& from, Tensor& tensor, const std::string& what) {
  switch (tensor.type.element) {
    case Element::f32:
      check_field(from.float_data(), tensor, what);
      return copy_field<float>(from.float_data(), tensor);
    case Element::f64:
      check_field(from.double_data(), tensor, what);
      return copy_field<double>(from.double_data(), tensor);
    case Element::i64:
      check_field(from.int64_data(), tensor, what);
      return copy_field<std::int64_t>(from.int64_data(), tensor);
    case Element::u64:
      check_field(from.uint64_data(), tensor, what);
      return copy_field<std::uint64_t>(from.uint64_data(), tensor);
    case Element::u32:
      check_field(from.uint64_data(), tensor, what);
      return copy_field<std::uint32_t>(from.uint64_data(), tensor);
    default:
      break;
  }
  check_field(from.int32_data(), tensor, what);
  switch (size_of(tensor.type.element)) {
    case 1:
      return copy_field<std::uint8_t>(from.int32_data(), tensor);
    case 2:
      return copy_field<std::uint16_t>(from.int32_data(), tensor);
    default:
      return copy_field<std::int32_t>(from.int32_data(), tensor);
  }
}

std::optional<Attribute::Values> to_value(const std::string& where, const onnx::AttributeProto& from,
                                          const std::set<std::string>& outer);

GraphBody to_graph_body(const std::string& where, const onnx::GraphProto& graph, const std::set<std::string>& outer);

Node to_node(const std::string& where, const onnx::NodeProto& from, const std::set<std::string>& outer) {
  Node node{from.name(), from.op_type(), program::domain_of(from), {}, {}, {}};
  node.inputs.assign(from.input().begin(), from.input().end());
  node.outputs.assign(from.output().begin(), from.output().end());
  for (const onnx::AttributeProto& attribute : from.attribute()) {
    if (!attribute.ref_attr_name().empty()) {
      node.attributes.refer(attribute.name(), attribute.ref_attr_name());
      continue;
    }
    if (auto value = to_value(where + ": " + program::describe(from), attribute, outer))
      node.attributes.set(attribute.name(), std::move(*value));
  }
  return node;
}

// Types alone (of an Optional) say nothing that values do not.
std::optional<Attribute::Values> to_value(const std::string& where, const onnx::AttributeProto& from,
                                          const std::set<std::string>& outer) {
  using Kind = onnx::AttributeProto;
  switch (from.type()) {
    case Kind::INT:
      return from.i();
    case Kind::FLOAT:
      return from.f();
    case Kind::STRING:
      return from.s();
    case Kind::INTS:
      return std::vector<Index>(from.ints().begin(), from.ints().end());
    case Kind::FLOATS:
      return std::vector<float>(from.floats().begin(), from.floats().end());
    case Kind::STRINGS:
      return std::vector<std::string>(from.strings().begin(), from.strings().end());
    case Kind::TENSOR:
      return to_tensor(from.t(), fmt::format("{}: attribute '{}'", where, from.name()));
    case Kind::GRAPH:
      return std::make_shared<const GraphBody>(to_graph_body(where, from.g(), outer));
    case Kind::TYPE_PROTO:
    case Kind::TYPE_PROTOS:
      return std::nullopt;
    default:
      throw InputError(fmt::format("{}: attribute '{}' is of kind {}; required a number, text, tensor or graph", where,
                                   from.name(), static_cast<int>(from.type())));
  }
}

GraphBody to_graph_body(const std::string& where, const onnx::GraphProto& graph, const std::set<std::string>& outer) {
  GraphBody body{graph.name(), {}, {}, {}, {}};
  std::set<std::string> names = outer;
  for (const auto& tensor : graph.initializer()) {
    body.initializers[tensor.name()] = to_tensor(tensor, fmt::format("{}: initializer '{}'", where, tensor.name()));
    names.insert(tensor.name());
  }
  for (const auto& input : graph.input()) {
    body.inputs.push_back(input.name());
    names.insert(input.name());
  }
  for (const auto& output : graph.output()) body.outputs.push_back(output.name());
  const std::vector<int> order =
      program::sort_nodes(where, graph.node(), [&](const std::string& name) { return names.contains(name); });
  for (const onnx::NodeProto& node : graph.node()) names.insert(node.output().begin(), node.output().end());
  for (const int index : order) body.nodes.push_back(to_node(where, graph.node(index), names));
  return body;
}

}  // namespace

Tensor to_tensor(const onnx::TensorProto& from, const std::string& what) {
  if (from.data_location() == onnx::TensorProto::EXTERNAL)
    throw InputError(fmt::format("{}: found data in another file; required it here", what));
  const Element element = element_of(from.data_type(), what);
  program::check_data(from, what);
  Shape sizes(from.dims().begin(), from.dims().end());
  for (Index& size : sizes) size = std::max<Index>(size, 1);
  program::element_count(sizes, what);  // of an empty tensor too, whose other sizes are multiplied
  Tensor tensor(element, Shape(from.dims().begin(), from.dims().end()));
  if (tensor.type.count() == 0) return tensor;
  if (from.has_raw_data())
    std::memcpy(tensor.data.get(), from.raw_data().data(), tensor.type.bytes());
  else
    copy_fields(from, tensor, what);
  return tensor;
}

onnx::TensorProto to_proto(const Tensor& tensor) {
  onnx::TensorProto proto;
  proto.set_data_type(static_cast<std::int32_t>(tensor.type.element));
  for (const Index size : tensor.type.shape) proto.add_dims(size);
  proto.set_raw_data(tensor.data.get(), tensor.type.bytes());
  return proto;
}

Node to_node(const onnx::NodeProto& node) {
  const std::vector<std::string> names = program::names_read(node);
  return to_node("model", node, {names.begin(), names.end()});
}

GraphBody to_graph_body(const std::string& where, const onnx::GraphProto& graph) {
  return to_graph_body(where, graph, {});
}

FunctionBody to_function_body(const std::string& where, const onnx::FunctionProto& function) {
  FunctionBody result;
  onnx::GraphProto graph;
  graph.set_name(function.name());
  for (const std::string& input : function.input()) graph.add_input()->set_name(input);
  for (const std::string& output : function.output()) graph.add_output()->set_name(output);
  *graph.mutable_node() = function.node();
  result.body = to_graph_body(where, graph, {});
  for (const auto& opset : function.opset_import())
    result.opsets[opset.domain() == "ai.onnx" ? "" : opset.domain()] = static_cast<int>(opset.version());
  return result;
}

}  // namespace doppler::model
