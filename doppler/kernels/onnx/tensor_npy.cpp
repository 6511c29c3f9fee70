#include "doppler/kernels/onnx/tensor_npy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/kernels/npy.h"
#include "doppler/program/onnx/tensor_file.h"

namespace doppler::model {
namespace {

struct ElementDescriptor {
  std::string_view text;
  Element element;
};
constexpr std::array<ElementDescriptor, 12> kElementDescriptors = {{{"<f4", Element::f32},
                                                                    {"<f8", Element::f64},
                                                                    {"<f2", Element::f16},
                                                                    {"<i8", Element::i64},
                                                                    {"<i4", Element::i32},
                                                                    {"<i2", Element::i16},
                                                                    {"|i1", Element::i8},
                                                                    {"<u8", Element::u64},
                                                                    {"<u4", Element::u32},
                                                                    {"<u2", Element::u16},
                                                                    {"|u1", Element::u8},
                                                                    {"|b1", Element::boolean}}};

Tensor widened(const Tensor& tensor) {
  Tensor result(Element::f32, tensor.type.shape);
  for (Index i = 0; i < tensor.type.count(); ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(tensor.as<std::uint16_t>()[i]) << 16;
    std::memcpy(result.as<float>() + i, &bits, sizeof bits);
  }
  return result;
}

}  // namespace

Tensor parse_tensor_npy(const std::string& where, std::string_view content) {
  const NpyContent npy = parse_npy_content(where, content, 0);
  const auto known = std::find_if(kElementDescriptors.begin(), kElementDescriptors.end(),
                                  [&](const ElementDescriptor& d) { return d.text == npy.descriptor; });
  if (known == kElementDescriptors.end())
    throw InputError(fmt::format("{}: npy header: found elements '{}'; required '<f4', '<i8' or another number type",
                                 where, npy.descriptor));
  const TensorType type{known->element, npy.shape};
  check_npy_data(where, npy, size_of(type.element));
  Tensor tensor(type);
  copy_npy_data(npy, size_of(type.element), tensor.data.get());
  return tensor;
}

std::string to_tensor_npy(const Tensor& tensor) {
  if (tensor.type.element == Element::bf16) return to_tensor_npy(widened(tensor));
  const auto known = std::find_if(kElementDescriptors.begin(), kElementDescriptors.end(),
                                  [&](const ElementDescriptor& d) { return d.element == tensor.type.element; });
  DOPPLER_CHECK(known != kElementDescriptors.end() && tensor.type.layout == Layout::row_major, "found {}",
                to_string(tensor.type));
  return make_npy(known->text, tensor.type.shape,
                  {reinterpret_cast<const char*>(tensor.data.get()), tensor.type.bytes()});
}

Tensor read_tensor(const std::string& path) {
  const std::string content = read_file(path);
  if (path.ends_with(".npy")) return parse_tensor_npy(path, content);
  if (path.ends_with(".pb")) return parse_tensor_pb(path, content);
  throw InputError(fmt::format("{}: found a name with another end; required .npy or .pb", path));
}

}  // namespace doppler::model
