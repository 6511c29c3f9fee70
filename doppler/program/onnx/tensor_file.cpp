#include "doppler/program/onnx/tensor_file.h"

#include <limits>
#include <onnx/onnx-data_pb.h>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/program/onnx/convert.h"

namespace doppler::model {
namespace {

template <typename Message>
Message parse_message(const std::string& where, std::string_view content, const char* wanted) {
  Message message;
  if (content.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
      !message.ParseFromArray(content.data(), static_cast<int>(content.size())))
    throw InputError(fmt::format("{}: found no {} in it; required one of ONNX's", where, wanted));
  return message;
}

Value to_sequence(const std::string& where, const onnx::SequenceProto& sequence) {
  std::vector<Value> elements;
  for (const auto& tensor : sequence.tensor_values()) elements.emplace_back(to_tensor(tensor, where));
  for (const auto& inner : sequence.sequence_values()) elements.push_back(to_sequence(where, inner));
  return Value::sequence(std::move(elements));
}

FileKind kind_of(const onnx::TypeProto& type) {
  if (type.has_optional_type()) return FileKind::optional;
  return type.has_sequence_type() ? FileKind::sequence : FileKind::tensor;
}

ModelPorts::Port port_of(const onnx::ValueInfoProto& info) {
  return {info.name(), kind_of(info.type()), program::element_of(info.type())};
}

}  // namespace

Tensor parse_tensor_pb(const std::string& where, std::string_view content) {
  return to_tensor(parse_message<onnx::TensorProto>(where, content, "tensor"), where);
}

std::string to_tensor_pb(const Tensor& tensor, const std::string& name) {
  onnx::TensorProto proto = to_proto(tensor);
  proto.set_name(name);
  return proto.SerializeAsString();
}

Value parse_value_pb(const std::string& where, std::string_view content, FileKind kind) {
  if (kind == FileKind::tensor) return parse_tensor_pb(where, content);
  if (kind == FileKind::sequence)
    return to_sequence(where, parse_message<onnx::SequenceProto>(where, content, "sequence"));
  const auto optional = parse_message<onnx::OptionalProto>(where, content, "optional");
  if (optional.has_tensor_value()) return to_tensor(optional.tensor_value(), where);
  if (optional.has_sequence_value()) return to_sequence(where, optional.sequence_value());
  return {};
}

ModelBody parse_model_body(const std::string& where, std::string_view content) {
  const auto model = parse_message<onnx::ModelProto>(where, content, "model");
  ModelBody body;
  for (const auto& opset : model.opset_import())
    body.opsets[opset.domain() == "ai.onnx" ? "" : opset.domain()] = static_cast<int>(opset.version());
  body.graph = to_graph_body(where, model.graph());
  for (const onnx::FunctionProto& function : model.functions()) {
    const std::string domain = function.domain() == "ai.onnx" ? "" : function.domain();
    body.functions.emplace(domain.empty() ? function.name() : domain + "." + function.name(),
                           to_function_body(where, function));
  }
  return body;
}

ModelPorts parse_model_ports(const std::string& where, std::string_view content) {
  const auto model = parse_message<onnx::ModelProto>(where, content, "model");
  ModelPorts ports;
  for (const auto& input : model.graph().input()) {
    bool initialised = false;
    for (const auto& tensor : model.graph().initializer()) initialised |= tensor.name() == input.name();
    if (!initialised) ports.inputs.push_back(port_of(input));
  }
  for (const auto& output : model.graph().output()) ports.outputs.push_back(port_of(output));
  return ports;
}

}  // namespace doppler::model
