#pragma once

// For files within doppler/program/onnx, which may see ONNX's own headers: from its messages to tensors and nodes.

#include "doppler/program/onnx/graph_body.h"
#include "doppler/program/onnx/proto.h"

namespace doppler::model {

// Throws InputError naming `what` if the data is of a type without kernels, in another file, or not all there.
Tensor to_tensor(const onnx::TensorProto& tensor, const std::string& what);
onnx::TensorProto to_proto(const Tensor& tensor);
Node to_node(const onnx::NodeProto& node);
GraphBody to_graph_body(const std::string& where, const onnx::GraphProto& graph);
FunctionBody to_function_body(const std::string& where, const onnx::FunctionProto& function);

}  // namespace doppler::model
