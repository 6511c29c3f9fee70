#include "doppler/program/onnx/constant.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "doppler/base/error.h"

namespace doppler::program {
namespace {

using onnx::TensorProto;

template <typename T>
std::vector<double> decode_raw(const std::string& raw) {
  static_assert(std::endian::native == std::endian::little, "ONNX stores raw data in little endian");
  std::vector<double> values(raw.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, raw.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
  return values;
}

std::optional<std::vector<double>> decode_raw(std::int32_t element, const std::string& raw) {
  switch (element) {
    case TensorProto::FLOAT:
      return decode_raw<float>(raw);
    case TensorProto::DOUBLE:
      return decode_raw<double>(raw);
    case TensorProto::INT64:
      return decode_raw<std::int64_t>(raw);
    case TensorProto::INT32:
      return decode_raw<std::int32_t>(raw);
    case TensorProto::INT8:
      return decode_raw<std::int8_t>(raw);
    case TensorProto::UINT8:
    case TensorProto::BOOL:
      return decode_raw<std::uint8_t>(raw);
    default:
      return std::nullopt;
  }
}

template <typename Field>
std::vector<double> widened(const Field& field) {
  return {field.begin(), field.end()};
}

std::optional<std::vector<double>> decode_fields(const TensorProto& tensor) {
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      return widened(tensor.float_data());
    case TensorProto::DOUBLE:
      return widened(tensor.double_data());
    case TensorProto::INT64:
      return widened(tensor.int64_data());
    case TensorProto::INT32:
    case TensorProto::INT8:
    case TensorProto::UINT8:
    case TensorProto::BOOL:
      return widened(tensor.int32_data());
    default:
      return std::nullopt;
  }
}

// Returns how many elements the typed fields hold; half-precision numbers and small integers share one.
Index field_elements(const TensorProto& tensor) {
  const Index complex = tensor.data_type() == TensorProto::COMPLEX64 || tensor.data_type() == TensorProto::COMPLEX128;
  const std::uint32_t bits = bits_of(tensor.data_type());
  Index packed = tensor.int32_data_size();
  if (bits == 4) packed *= 2;  // two to an entry
  return std::max({static_cast<Index>(tensor.float_data_size()) / (1 + complex), packed,
                   static_cast<Index>(tensor.int64_data_size()), static_cast<Index>(tensor.string_data_size()),
                   static_cast<Index>(tensor.double_data_size()) / (1 + complex),
                   static_cast<Index>(tensor.uint64_data_size())});
}

Shape dims_of(const TensorProto& tensor, const std::string& what) {
  Shape dims(tensor.dims().begin(), tensor.dims().end());
  for (const Index size : dims)
    if (size < 0) throw InputError(fmt::format("{}: found shape {}; required no negative size", what, to_string(dims)));
  return dims;
}

}  // namespace

Index Constant::as_index(std::size_t i) const {
  constexpr double kLargest = 9223372036854775807.0;  // rounds up to 2^63
  if (!(values[i] < kLargest)) return std::numeric_limits<Index>::max();
  return values[i] < -kLargest ? std::numeric_limits<Index>::min() : static_cast<Index>(values[i]);
}

void check_data(const TensorProto& tensor, const std::string& what) {
  const Index count = element_count(dims_of(tensor, what), what);
  if (tensor.data_location() == TensorProto::EXTERNAL) return;
  const Bytes claimed = bytes_of(tensor.data_type(), count);
  if (tensor.has_raw_data()) {
    if (bits_of(tensor.data_type()) > 0 && tensor.raw_data().size() != claimed)
      throw InputError(fmt::format("{}: shape and type claim {}, the data has {}; required as many", what,
                                   format_bytes(claimed), format_bytes(tensor.raw_data().size())));
  } else if (const Index held = field_elements(tensor); held < count) {
    throw InputError(
        fmt::format("{}: the shape claims {} elements, the data has {}; required as many", what, count, held));
  }
}

std::optional<Constant> read_constant(const TensorProto& tensor) {
  if (tensor.data_location() == TensorProto::EXTERNAL) return std::nullopt;
  Constant constant{tensor.data_type(), dims_of(tensor, tensor.name()), {}};
  const Index count = element_count(constant.dims, tensor.name());
  if (count > kMostFolded) return std::nullopt;
  auto values = tensor.has_raw_data() ? decode_raw(constant.element, tensor.raw_data()) : decode_fields(tensor);
  if (!values || static_cast<Index>(values->size()) < count) return std::nullopt;
  constant.values = std::move(*values);
  constant.values.resize(static_cast<std::size_t>(count));
  return constant;
}

TensorProto to_proto(const Constant& constant) {
  TensorProto tensor;
  tensor.set_data_type(constant.element);
  for (const Index size : constant.dims) tensor.add_dims(size);
  for (std::size_t i = 0; i < constant.values.size(); ++i) {
    const double value = constant.values[i];
    if (constant.element == TensorProto::FLOAT)
      tensor.add_float_data(static_cast<float>(value));
    else if (constant.element == TensorProto::DOUBLE)
      tensor.add_double_data(value);
    else if (constant.element == TensorProto::INT64)
      tensor.add_int64_data(constant.as_index(i));
    else
      tensor.add_int32_data(static_cast<std::int32_t>(constant.as_index(i)));
  }
  return tensor;
}

ConstantNode read_constant_node(const onnx::NodeProto& node) {
  const auto made = [](std::int32_t element, Shape dims, std::vector<double> values) {
    ConstantNode result{tensor_type(element, dims), std::nullopt};
    if (static_cast<Index>(values.size()) <= kMostFolded)
      result.value = Constant{element, std::move(dims), std::move(values)};
    return result;
  };
  const auto list = [&](std::int32_t element, std::vector<double> values) {
    const auto size = static_cast<Index>(values.size());
    return made(element, {size}, std::move(values));
  };
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    const std::string& name = attribute.name();
    if (name == "value") {
      check_data(attribute.t(), describe(node));
      return {tensor_type(attribute.t().data_type(), dims_of(attribute.t(), describe(node))),
              read_constant(attribute.t())};
    }
    if (name == "value_int") return made(TensorProto::INT64, {}, {static_cast<double>(attribute.i())});
    if (name == "value_float") return made(TensorProto::FLOAT, {}, {attribute.f()});
    if (name == "value_ints") return list(TensorProto::INT64, widened(attribute.ints()));
    if (name == "value_floats") return list(TensorProto::FLOAT, widened(attribute.floats()));
    if (name == "value_string") return {tensor_type(TensorProto::STRING, Shape{}), std::nullopt};
    if (name == "value_strings")
      return {tensor_type(TensorProto::STRING, Shape{attribute.strings_size()}), std::nullopt};
    if (name == "sparse_value") {
      const onnx::SparseTensorProto& sparse = attribute.sparse_tensor();
      const Shape dims(sparse.dims().begin(), sparse.dims().end());
      element_count(dims, describe(node));
      return {tensor_type(sparse.values().data_type(), dims), std::nullopt};
    }
  }
  throw InputError(fmt::format("{}: found no value; required one of ONNX's value attributes", describe(node)));
}

}  // namespace doppler::program
