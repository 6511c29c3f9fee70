#include "doppler/program/onnx/zoo/model_writer.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "doppler/base/error.h"

namespace doppler::program {
namespace {

constexpr std::size_t kLargestFile = (std::size_t{1} << 31) - 1;  // of protobuf
constexpr int kIrVersion = 8, kOpset = 17;

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

onnx::AttributeProto attribute(const std::string& name, Index value) {
  onnx::AttributeProto result;
  result.set_name(name);
  result.set_type(onnx::AttributeProto::INT);
  result.set_i(value);
  return result;
}
onnx::AttributeProto attribute(const std::string& name, float value) {
  onnx::AttributeProto result;
  result.set_name(name);
  result.set_type(onnx::AttributeProto::FLOAT);
  result.set_f(value);
  return result;
}
onnx::AttributeProto attribute(const std::string& name, const std::vector<Index>& values) {
  onnx::AttributeProto result;
  result.set_name(name);
  result.set_type(onnx::AttributeProto::INTS);
  for (const Index value : values) result.add_ints(value);
  return result;
}

ModelWriter::ModelWriter(const std::string& name, std::optional<std::uint64_t> weights) : weights_(weights) {
  model_.set_ir_version(kIrVersion);
  model_.set_producer_name("doppler");
  model_.add_opset_import()->set_version(kOpset);
  model_.mutable_graph()->set_name(name);
}

ModelWriter::Module ModelWriter::in(const std::string& child) {
  path_.push_back(child);
  return Module(*this);
}

std::string ModelWriter::module_name() const { return fmt::format("{}", fmt::join(path_, ".")); }

// PyTorch repeats the name of a list before the number of its child.
std::string ModelWriter::node_name(const std::string& op) {
  std::string name;
  for (std::size_t i = 0; i < path_.size(); ++i) {
    std::string part = path_[i];
    for (std::size_t list = i; list > 0 && is_number(path_[list]); --list) part = path_[list - 1] + "." + part;
    name += "/" + part;
  }
  name += "/" + op;
  const int before = used_[name]++;
  return before == 0 ? name : fmt::format("{}_{}", name, before);
}

std::string ModelWriter::constant_name() { return fmt::format("constant_{}", constants_++); }

ModelWriter::Value ModelWriter::input(const std::string& name, const Shape& shape, onnx::TensorProto::DataType type) {
  onnx::ValueInfoProto& value = *model_.mutable_graph()->add_input();
  value.set_name(name);
  *value.mutable_type() = tensor_type(type, shape);
  return {name, shape};
}

void ModelWriter::output(const std::string& name, const Value& value) {
  onnx::NodeProto& identity = *model_.mutable_graph()->add_node();
  identity.set_op_type("Identity");
  identity.set_name(node_name("Identity"));
  identity.add_input(value.name);
  identity.add_output(name);
  onnx::ValueInfoProto& result = *model_.mutable_graph()->add_output();
  result.set_name(name);
  *result.mutable_type() = tensor_type(onnx::TensorProto::FLOAT, value.shape);
}

onnx::TensorProto& ModelWriter::initializer(const std::string& name, onnx::TensorProto::DataType type,
                                            const Shape& shape) {
  check_room(name, shape);
  onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const Index size : shape) tensor.add_dims(size);
  return tensor;
}

ModelWriter::Value ModelWriter::weight(const std::string& name, const Shape& shape, Draw draw, double deviation) {
  const std::string full = path_.empty() ? name : module_name() + "." + name;
  if (!weights_) return input(full, shape);
  const auto count = static_cast<std::size_t>(product(shape));
  check_room(full, shape);
  std::vector<float> values(count, draw == Draw::ones ? 1.0F : 0.0F);
  Rng rng(mix(*weights_, drawn_++));
  if (draw == Draw::normal)
    for (float& value : values) value = static_cast<float>(deviation * rng.normal());
  initializer(full, onnx::TensorProto::FLOAT, shape).set_raw_data(values.data(), count * sizeof(float));
  return {full, shape};
}

ModelWriter::Value ModelWriter::constant(const std::vector<Index>& values) {
  const std::string name = constant_name();
  const Shape shape = {static_cast<Index>(values.size())};
  initializer(name, onnx::TensorProto::INT64, shape).set_raw_data(values.data(), values.size() * sizeof(Index));
  return {name, shape};
}
ModelWriter::Value ModelWriter::constant(float value) { return constant(Shape(), std::vector<float>{value}); }
ModelWriter::Value ModelWriter::constant(const Shape& shape, const std::vector<float>& values) {
  const std::string name = constant_name();
  initializer(name, onnx::TensorProto::FLOAT, shape).set_raw_data(values.data(), values.size() * sizeof(float));
  return {name, shape};
}

ModelWriter::Value ModelWriter::node(const std::string& op, const std::vector<Value>& inputs, const Shape& shape,
                                     Attributes attributes) {
  onnx::NodeProto& node = *model_.mutable_graph()->add_node();
  node.set_op_type(op);
  node.set_name(node_name(op));
  for (const Value& value : inputs) node.add_input(value.name);
  for (onnx::AttributeProto& one : attributes) *node.add_attribute() = std::move(one);
  node.add_output(node.name() + "_output_0");
  return {node.output(0), shape};
}

ModelWriter::Value ModelWriter::linear(const std::string& name, const Value& x, Index width, bool bias) {
  const Module module = in(name);
  const Index inputs = x.shape.back();
  const double deviation = 1 / std::sqrt(static_cast<double>(inputs));
  Shape shape = x.shape;
  shape.back() = width;
  if (shape.size() == 2 && bias) {
    const Value w = weight("weight", {width, inputs}, Draw::normal, deviation);
    return node("Gemm", {x, w, weight("bias", {width}, Draw::zeros)}, shape, {attribute("transB", Index{1})});
  }
  // The exporter has transposed the weight of what is no matrix.
  const Value product = node("MatMul", {x, weight("weight", {inputs, width}, Draw::normal, deviation)}, shape);
  return bias ? node("Add", {weight("bias", {width}, Draw::zeros), product}, shape) : product;
}

ModelWriter::Value ModelWriter::layer_norm(const std::string& name, const Value& x, float epsilon) {
  const Module module = in(name);
  const Shape width = {x.shape.back()};
  return node("LayerNormalization", {x, weight("weight", width, Draw::ones), weight("bias", width, Draw::zeros)},
              x.shape, {attribute("axis", Index{-1}), attribute("epsilon", epsilon)});
}

// x (1 + erf(x / √2)) / 2, node by node as exporters write it.
ModelWriter::Value ModelWriter::gelu(const Value& x) {
  const Value scaled = node("Div", {x, constant(std::sqrt(2.0F))}, x.shape);
  const Value shifted = node("Add", {node("Erf", {scaled}, x.shape), constant(1.0F)}, x.shape);
  return node("Mul", {node("Mul", {x, shifted}, x.shape), constant(0.5F)}, x.shape);
}

ModelWriter::Value ModelWriter::reshape(const Value& x, const Shape& shape) {
  return node("Reshape", {x, constant(shape)}, shape);
}

ModelWriter::Value ModelWriter::transpose(const Value& x, const std::vector<Index>& order) {
  Shape shape;
  for (const Index axis : order) shape.push_back(x.shape[static_cast<std::size_t>(axis)]);
  return node("Transpose", {x}, shape, {attribute("perm", order)});
}

ModelWriter::Value ModelWriter::matmul(const Value& a, const Value& b) {
  Shape shape = a.shape;
  shape.back() = b.shape.back();
  return node("MatMul", {a, b}, shape);
}

ModelWriter::Value ModelWriter::softmax(const Value& x) {
  return node("Softmax", {x}, x.shape, {attribute("axis", Index{-1})});
}

void ModelWriter::check_room(const std::string& name, const Shape& shape) const {
  const auto bytes = static_cast<std::size_t>(product(shape)) * sizeof(float);
  if (model_.ByteSizeLong() + bytes > kLargestFile)
    throw InputError(fmt::format("model: found more than {} bytes with '{}'; required a smaller model, or no weights",
                                 kLargestFile, name));
}

std::string ModelWriter::bytes() const { return model_.SerializeAsString(); }

}  // namespace doppler::program
