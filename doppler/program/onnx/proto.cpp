#include "doppler/program/onnx/proto.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "doppler/base/error.h"

namespace doppler::program {
namespace {

struct ElementRow {
  std::string_view name;
  std::uint32_t bits;
  bool is_float;
  bool is_weight;
};
// The rows are in the order of TensorProto.DataType.
constexpr std::array<ElementRow, 24> kElements = {{
    {"undefined", 0, false, false}, {"f32", 32, true, true},   {"u8", 8, false, true},
    {"i8", 8, false, true},         {"u16", 16, false, true},  {"i16", 16, false, true},
    {"i32", 32, false, true},       {"i64", 64, false, false}, {"string", 0, false, false},
    {"bool", 8, false, false},      {"f16", 16, true, true},   {"f64", 64, true, true},
    {"u32", 32, false, true},       {"u64", 64, false, false}, {"c64", 64, true, true},
    {"c128", 128, true, true},      {"bf16", 16, true, true},  {"f8e4m3fn", 8, true, true},
    {"f8e4m3fnuz", 8, true, true},  {"f8e5m2", 8, true, true}, {"f8e5m2fnuz", 8, true, true},
    {"u4", 4, false, true},         {"i4", 4, false, true},    {"f4e2m1", 4, true, true},
}};
const ElementRow& row(std::int32_t element) {
  const bool known = element > 0 && static_cast<std::size_t>(element) < kElements.size();
  return kElements[known ? static_cast<std::size_t>(element) : 0];
}

const onnx::TypeProto* innermost(const onnx::TypeProto& type) {
  const onnx::TypeProto* inner = &type;
  while (true) {
    if (inner->has_sequence_type())
      inner = &inner->sequence_type().elem_type();
    else if (inner->has_optional_type())
      inner = &inner->optional_type().elem_type();
    else
      return inner;
  }
}

}  // namespace

const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node, std::string_view name) {
  for (const onnx::AttributeProto& attribute : node.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

Index int_attribute(const onnx::NodeProto& node, std::string_view name, Index otherwise) {
  const onnx::AttributeProto* found = find_attribute(node, name);
  return found != nullptr && found->has_i() ? found->i() : otherwise;
}

std::string string_attribute(const onnx::NodeProto& node, std::string_view name, std::string otherwise) {
  const onnx::AttributeProto* found = find_attribute(node, name);
  return found != nullptr && found->has_s() ? found->s() : std::move(otherwise);
}

std::optional<std::vector<Index>> ints_attribute(const onnx::NodeProto& node, std::string_view name) {
  const onnx::AttributeProto* found = find_attribute(node, name);
  if (found == nullptr) return std::nullopt;
  return std::vector<Index>(found->ints().begin(), found->ints().end());
}

std::string domain_of(const onnx::NodeProto& node) { return node.domain() == "ai.onnx" ? "" : node.domain(); }

std::string operator_name(const onnx::NodeProto& node) {
  const std::string domain = domain_of(node);
  return domain.empty() ? node.op_type() : domain + "." + node.op_type();
}

std::string describe(const onnx::NodeProto& node) {
  const std::string& name = node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
  return fmt::format("node '{}' ({})", name, operator_name(node));
}

std::string dtype_name(std::int32_t element) { return std::string(row(element).name); }
std::uint32_t bits_of(std::int32_t element) { return row(element).bits; }
bool is_float(std::int32_t element) { return row(element).is_float; }
bool is_weight_type(std::int32_t element) { return row(element).is_weight; }

bool is_tensor(const onnx::TypeProto& type) { return type.has_tensor_type() || type.has_sparse_tensor_type(); }

std::int32_t element_of(const onnx::TypeProto& type) {
  const onnx::TypeProto* inner = innermost(type);
  return inner->has_sparse_tensor_type() ? inner->sparse_tensor_type().elem_type() : inner->tensor_type().elem_type();
}

std::optional<Shape> dims_of(const onnx::TypeProto& type) {
  const onnx::TypeProto* inner = innermost(type);
  const bool sparse = inner->has_sparse_tensor_type();
  if (sparse ? !inner->sparse_tensor_type().has_shape() : !inner->tensor_type().has_shape()) return std::nullopt;
  Shape dims;
  for (const auto& dim : (sparse ? inner->sparse_tensor_type().shape() : inner->tensor_type().shape()).dim())
    dims.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : kUnknown);
  return dims;
}

void set_dims(onnx::TypeProto& type, const Shape& dims) {
  auto* shape = type.mutable_tensor_type()->mutable_shape();
  shape->clear_dim();
  for (const Index size : dims) {
    auto* dim = shape->add_dim();
    if (size != kUnknown) dim->set_dim_value(size);
  }
}

onnx::TypeProto tensor_type(std::int32_t element, const std::optional<Shape>& dims) {
  onnx::TypeProto type;
  type.mutable_tensor_type()->set_elem_type(element);
  if (dims) set_dims(type, *dims);
  return type;
}

bool is_complete(const onnx::TypeProto& type) {
  if (type.has_sequence_type() || type.has_optional_type() || type.has_map_type()) return true;
  const std::optional<Shape> dims = dims_of(type);
  return dims && std::find(dims->begin(), dims->end(), kUnknown) == dims->end();
}

Index element_count(const Shape& dims, const std::string& what) {
  // Zeros go first, for [0, huge, huge] is empty, not too large.
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  Index count = 1;
  for (const Index size : dims) {
    if (size > kMostElements / 16 / count)
      throw InputError(
          fmt::format("{}: found shape {}; required at most {} elements", what, to_string(dims), kMostElements / 16));
    count *= size;
  }
  return count;
}

Shape with_batch_first(Shape dims) {
  if (dims.size() > 2) std::rotate(dims.begin(), dims.begin() + 1, dims.end() - 1);
  return dims;
}

Shape permuted(const Shape& dims, const std::optional<std::vector<Index>>& order) {
  if (!order || order->size() != dims.size()) return dims;
  Shape result = dims;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (const Index axis = (*order)[i]; axis >= 0 && axis < std::ssize(dims))
      result[i] = dims[static_cast<std::size_t>(axis)];
  return result;
}

Index elements(const onnx::TypeProto& type) {
  if (!is_complete(type)) return 0;
  const std::optional<Shape> dims = dims_of(type);
  if (!dims || std::find(dims->begin(), dims->end(), kUnknown) != dims->end()) return 0;
  // The count saturates; what is too large is refused where it is made, by element_count.
  if (std::find(dims->begin(), dims->end(), 0) != dims->end()) return 0;
  Index count = 1;
  for (const Index size : *dims) count = size > kMostElements / 16 / count ? kMostElements / 16 : count * size;
  return count;
}

Bytes bytes_of(std::int32_t element, Index count) { return (static_cast<Bytes>(count) * bits_of(element) + 7) / 8; }
Bytes bytes_of(const onnx::TypeProto& type) { return bytes_of(element_of(type), elements(type)); }

}  // namespace doppler::program
