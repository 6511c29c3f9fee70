#include "doppler/program/onnx/rewrite/rewriting.h"

#include <algorithm>

#include <fmt/format.h>

#include "doppler/base/error.h"

namespace doppler::program {
namespace {

bool imports(const onnx::ModelProto& model, const std::string& domain) {
  return std::any_of(model.opset_import().begin(), model.opset_import().end(),
                     [&](const auto& opset) { return opset.domain() == domain; });
}

onnx::AttributeProto named(const std::string& name, onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto result;
  result.set_name(name);
  result.set_type(type);
  return result;
}

}  // namespace

Rewriting::Rewriting(Reading& reading) : model_(reading.model) {
  onnx::GraphProto& graph = *model_.mutable_graph();
  for (const auto& opset : model_.opset_import())
    if (opset.domain().empty() || opset.domain() == "ai.onnx") opset_ = static_cast<int>(opset.version());
  for (const auto& [name, id] : reading.names) {
    const ModelValue& value = reading.values[id];
    Tensor& tensor = tensors_[name];
    tensor.type = value.type;
    tensor.is_static = value.is_static;
    tensor.constant = value.constant;
  }
  for (const auto& output : graph.output()) tensors_[output.name()].kept = true;
  storage_.Swap(graph.mutable_node());
  originals_ = storage_.size();
  nodes_.reserve(static_cast<std::size_t>(originals_));
  for (int i = 0; i < originals_; ++i) {
    onnx::NodeProto& node = *storage_.Mutable(i);
    nodes_.push_back({&node, true, {i}});
    const NodeIndex index = nodes_.size() - 1;
    std::vector<std::string> direct(node.input().begin(), node.input().end());
    for (const std::string& input : direct) tensors_[input].readers.push_back(index);
    for (const std::string& output : node.output()) tensors_[output].writer = index;
    for (const std::string& name : names_read(node))
      if (std::find(direct.begin(), direct.end(), name) == direct.end()) tensors_[name].kept = true;
  }
}

bool Rewriting::is(NodeIndex node, std::string_view name) const {
  return nodes_[node].alive && operator_name(*nodes_[node].proto) == name;
}

const Rewriting::Tensor* Rewriting::find(const std::string& name) const {
  const auto found = name.empty() ? tensors_.end() : tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

std::optional<NodeIndex> Rewriting::writer(const std::string& tensor) const {
  const Tensor* found = find(tensor);
  return found == nullptr ? std::nullopt : found->writer;
}

std::optional<NodeIndex> Rewriting::sole_writer(const std::string& tensor, std::string_view name) const {
  const Tensor* found = find(tensor);
  if (found == nullptr || !found->writer || found->kept || found->readers.size() != 1) return std::nullopt;
  const NodeIndex writer = *found->writer;
  if (!is(writer, name) || nodes_[writer].proto->output(0) != tensor) return std::nullopt;
  return writer;
}

std::optional<NodeIndex> Rewriting::only_reader(NodeIndex node) const {
  const onnx::NodeProto& proto = *nodes_[node].proto;
  if (proto.output_size() == 0) return std::nullopt;
  for (int i = 1; i < proto.output_size(); ++i)
    if (const Tensor* other = find(proto.output(i)); other != nullptr && (other->kept || !other->readers.empty()))
      return std::nullopt;
  const Tensor* found = find(proto.output(0));
  if (found == nullptr || found->kept || found->readers.size() != 1) return std::nullopt;
  return found->readers[0];
}

std::vector<NodeIndex> Rewriting::readers(const std::string& tensor) const {
  const Tensor* found = find(tensor);
  return found == nullptr ? std::vector<NodeIndex>() : found->readers;
}

std::optional<Shape> Rewriting::shape(const std::string& tensor) const {
  const Tensor* found = find(tensor);
  if (found == nullptr || !is_tensor(found->type) || !is_complete(found->type)) return std::nullopt;
  return dims_of(found->type);
}

std::int32_t Rewriting::element(const std::string& tensor) const {
  const Tensor* found = find(tensor);
  return found == nullptr || !is_tensor(found->type) ? 0 : element_of(found->type);
}

bool Rewriting::is_static(const std::string& tensor) const {
  const Tensor* found = find(tensor);
  return found != nullptr && found->is_static;
}

std::optional<double> Rewriting::scalar(const std::string& tensor) const {
  const Tensor* found = find(tensor);
  if (found == nullptr || !found->constant || found->constant->values.size() != 1) return std::nullopt;
  return found->constant->values[0];
}

std::optional<std::vector<Index>> Rewriting::integers(const std::string& tensor) const {
  const Tensor* found = find(tensor);
  if (found == nullptr || !found->constant) return std::nullopt;
  std::vector<Index> values;
  for (std::size_t i = 0; i < found->constant->values.size(); ++i) values.push_back(found->constant->as_index(i));
  return values;
}

std::string Rewriting::fresh_name(const std::string& what) {
  std::string name;
  do {
    name = fmt::format("doppler/{}_{}", what, names_++);
  } while (tensors_.contains(name));
  return name;
}

std::string Rewriting::add_static(const std::string& op, const std::vector<std::string>& inputs, const Shape& shape,
                                  std::int32_t element, std::vector<onnx::AttributeProto> attributes) {
  const std::string name = fresh_name(op);
  onnx::NodeProto node = make_node(op, inputs, {name}, name);
  for (onnx::AttributeProto& attribute : attributes) *node.add_attribute() = std::move(attribute);
  add(std::move(node), {});
  tensors_[name].type = tensor_type(element, shape);
  tensors_[name].is_static = true;
  return name;
}

std::string Rewriting::add_scalar(float value) {
  const std::string name = fresh_name("scalar");
  onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_float_data(value);
  Tensor& known = tensors_[name];
  known.type = tensor_type(onnx::TensorProto::FLOAT, Shape());
  known.is_static = true;
  known.constant = Constant{onnx::TensorProto::FLOAT, {}, {value}};
  return name;
}

std::string Rewriting::add_integers(const std::vector<Index>& values) {
  const std::string name = fresh_name("integers");
  onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<Index>(values.size()));
  for (const Index value : values) tensor.add_int64_data(value);
  Tensor& known = tensors_[name];
  known.type = tensor_type(onnx::TensorProto::INT64, Shape{static_cast<Index>(values.size())});
  known.is_static = true;
  known.constant = Constant{onnx::TensorProto::INT64, *dims_of(known.type), {values.begin(), values.end()}};
  return name;
}

NodeIndex Rewriting::add(onnx::NodeProto node, std::vector<int> origins) {
  if (const std::string domain = domain_of(node); !domain.empty() && !imports(model_, domain)) {
    auto* opset = model_.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(1);
  }
  onnx::NodeProto* const stored = storage_.Add();
  *stored = std::move(node);
  nodes_.push_back({stored, true, std::move(origins)});
  const NodeIndex index = nodes_.size() - 1;
  for (const std::string& input : stored->input()) tensors_[input].readers.push_back(index);
  for (const std::string& output : stored->output()) tensors_[output].writer = index;
  return index;
}

void Rewriting::forget(NodeIndex node) {
  Slot& slot = nodes_[node];
  slot.alive = false;
  for (const std::string& input : slot.proto->input()) std::erase(tensors_[input].readers, node);
  for (const std::string& output : slot.proto->output())
    if (Tensor& tensor = tensors_[output]; tensor.writer == node) tensor.writer.reset();
}

void Rewriting::fuse(const std::vector<NodeIndex>& nodes, onnx::NodeProto fused) {
  std::vector<int> origins;
  for (const NodeIndex node : nodes) {
    DOPPLER_CHECK(nodes_[node].alive, "a node that is fused twice");
    origins.insert(origins.end(), nodes_[node].origins.begin(), nodes_[node].origins.end());
  }
  for (const NodeIndex node : nodes) forget(node);
  add(std::move(fused), std::move(origins));
}

std::vector<int> Rewriting::finish() {
  onnx::GraphProto& graph = *model_.mutable_graph();
  std::vector<int> place(static_cast<std::size_t>(originals_), -1);
  for (Slot& slot : nodes_) {
    if (!slot.alive) continue;
    const int index = graph.node_size();
    *graph.add_node() = std::move(*slot.proto);
    for (const int origin : slot.origins) place[static_cast<std::size_t>(origin)] = index;
  }
  return place;
}

onnx::NodeProto make_node(std::string_view name, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs, const std::string& node_name) {
  onnx::NodeProto node;
  const std::size_t dot = name.rfind('.');
  node.set_op_type(std::string(name.substr(dot == name.npos ? 0 : dot + 1)));
  if (dot != name.npos) node.set_domain(std::string(name.substr(0, dot)));
  node.set_name(node_name);
  for (const std::string& input : inputs) node.add_input(input);
  while (node.input_size() > 0 && node.input(node.input_size() - 1).empty()) node.mutable_input()->RemoveLast();
  for (const std::string& output : outputs) node.add_output(output);
  return node;
}

onnx::AttributeProto int_value(const std::string& name, Index value) {
  onnx::AttributeProto result = named(name, onnx::AttributeProto::INT);
  result.set_i(value);
  return result;
}
onnx::AttributeProto float_value(const std::string& name, float value) {
  onnx::AttributeProto result = named(name, onnx::AttributeProto::FLOAT);
  result.set_f(value);
  return result;
}
onnx::AttributeProto ints_value(const std::string& name, const std::vector<Index>& values) {
  onnx::AttributeProto result = named(name, onnx::AttributeProto::INTS);
  for (const Index value : values) result.add_ints(value);
  return result;
}
onnx::AttributeProto floats_value(const std::string& name, const std::vector<float>& values) {
  onnx::AttributeProto result = named(name, onnx::AttributeProto::FLOATS);
  for (const float value : values) result.add_floats(value);
  return result;
}
onnx::AttributeProto string_value(const std::string& name, const std::string& value) {
  onnx::AttributeProto result = named(name, onnx::AttributeProto::STRING);
  result.set_s(value);
  return result;
}

float float_attribute(const onnx::NodeProto& node, std::string_view name, float otherwise) {
  const onnx::AttributeProto* found = find_attribute(node, name);
  return found != nullptr && found->has_f() ? found->f() : otherwise;
}

}  // namespace doppler::program
