#pragma once

#include "doppler/program/onnx/graph_body.h"

namespace doppler::model {

// Read and write a tensor as ONNX's TensorProto, the format of .pb files. Reading copies the data; it throws InputError,
// whose text starts with `where`.
Tensor parse_tensor_pb(const std::string& where, std::string_view content);
std::string to_tensor_pb(const Tensor& tensor, const std::string& name = "");

// Reads what ONNX's backend tests have in .pb files: a tensor, a sequence or an optional, by the type that the model
// declares for it.
enum class FileKind : std::uint8_t { tensor, sequence, optional };
Value parse_value_pb(const std::string& where, std::string_view content, FileKind kind);

// Reads a model for an interpreter: nodes sorted, attributes and initialisers as values. It refuses data in other files.
ModelBody parse_model_body(const std::string& where, std::string_view content);
// Returns the names of the graph's inputs without initialisers, and of its outputs, with what each one is.
struct ModelPorts {
  struct Port {
    std::string name;
    FileKind kind = FileKind::tensor;
    std::int32_t element = 0;  // by the number of onnx.proto
  };
  std::vector<Port> inputs, outputs;
};
ModelPorts parse_model_ports(const std::string& where, std::string_view content);

}  // namespace doppler::model
