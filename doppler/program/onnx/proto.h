#pragma once

// This is the only door to ONNX's own headers; nothing outside doppler/program/onnx opens it.

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doppler/program/expr/shape.h"

namespace doppler::program {

inline constexpr Index kUnknown = -1;  // a dimension whose size is not known

const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node, std::string_view name);
Index int_attribute(const onnx::NodeProto& node, std::string_view name, Index otherwise);
std::string string_attribute(const onnx::NodeProto& node, std::string_view name, std::string otherwise);
std::optional<std::vector<Index>> ints_attribute(const onnx::NodeProto& node, std::string_view name);

// Returns the node's domain; "" and "ai.onnx" are one.
std::string domain_of(const onnx::NodeProto& node);
// Returns "Conv", or "com.microsoft.Gelu" outside the standard domain.
std::string operator_name(const onnx::NodeProto& node);
// Returns "node 'conv1' (Conv)"; a node without a name goes by its first output.
std::string describe(const onnx::NodeProto& node);

// Element types, by the numbers of onnx.proto; those that came after libonnx 1.12 are known too.
std::string dtype_name(std::int32_t element);
// Strings and unknown types have no size of their own: 0.
std::uint32_t bits_of(std::int32_t element);
bool is_float(std::int32_t element);
// Weights are made of every type but those of shapes, indices, masks and text.
bool is_weight_type(std::int32_t element);

bool is_tensor(const onnx::TypeProto& type);
// Returns the element type of a tensor, or of the tensors in a sequence or optional.
std::int32_t element_of(const onnx::TypeProto& type);
// Returns nothing if the rank is unknown, and kUnknown where a dimension is.
std::optional<Shape> dims_of(const onnx::TypeProto& type);
void set_dims(onnx::TypeProto& type, const Shape& dims);
onnx::TypeProto tensor_type(std::int32_t element, const std::optional<Shape>& dims);
// True if every dimension is known, and for what is no tensor.
bool is_complete(const onnx::TypeProto& type);
// Throws InputError naming `what` if there are more elements than we count.
Index element_count(const Shape& dims, const std::string& what);
// Returns [batch…, S, K] of [S, batch…, K], as com.microsoft.FusedMatMul reads a tensor with transBatchA or -B.
Shape with_batch_first(Shape dims);
// Returns the dimensions in the order of a Transpose; as they are if there is no order for so many.
Shape permuted(const Shape& dims, const std::optional<std::vector<Index>>& order);
// Returns 0 where the shape is not known.
Index elements(const onnx::TypeProto& type);
Bytes bytes_of(std::int32_t element, Index count);
Bytes bytes_of(const onnx::TypeProto& type);

}  // namespace doppler::program
