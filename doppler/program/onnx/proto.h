#pragma once

// The only door to ONNX's own headers; nothing outside doppler/program/onnx opens it.

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

// "" and "ai.onnx" are one domain.
std::string domain_of(const onnx::NodeProto& node);
// "Conv", or "com.microsoft.Gelu" outside the standard domain.
std::string operator_name(const onnx::NodeProto& node);
// "node 'conv1' (Conv)"; a node without a name goes by its first output.
std::string describe(const onnx::NodeProto& node);

// Element types, by the numbers of onnx.proto; those that came after libonnx 1.12 are known too.
std::string dtype_name(std::int32_t element);
std::uint32_t bits_of(std::int32_t element);  // 0: strings and unknown types have no size of their own
bool is_float(std::int32_t element);
// What weights are made of: everything but the types of shapes, indices, masks and text.
bool is_weight_type(std::int32_t element);

bool is_tensor(const onnx::TypeProto& type);
// Of a tensor, or of the elements of a sequence or optional.
std::int32_t element_of(const onnx::TypeProto& type);
// Nothing if the rank is unknown; kUnknown where a dimension is.
std::optional<Shape> dims_of(const onnx::TypeProto& type);
void set_dims(onnx::TypeProto& type, const Shape& dims);
onnx::TypeProto tensor_type(std::int32_t element, const std::optional<Shape>& dims);
bool is_complete(const onnx::TypeProto& type);  // every dimension known; true for what is no tensor
// Throws InputError naming `what` if there are more elements than we count.
Index element_count(const Shape& dims, const std::string& what);
// 0 where unknown.
Index elements(const onnx::TypeProto& type);
Bytes bytes_of(std::int32_t element, Index count);
Bytes bytes_of(const onnx::TypeProto& type);

}  // namespace doppler::program
