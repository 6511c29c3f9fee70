#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "doppler/program/expr/shape.h"

// Tensors as ONNX models have them, free of ONNX's own headers: what weights, inputs, outputs and kernels are made of.

namespace doppler::model {

using program::Index;
using program::Shape;

// The element types that kernels compute on, by the numbers of onnx.proto. Booleans are bytes of 0 and 1; f16 and bf16
// are computed in f32.
enum class Element : std::int32_t {
  none = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  bf16 = 16,
};
std::string_view to_string(Element element);
// Throws InputError naming `what` if it is the number of a type without kernels: text, complex numbers, 4-bit integers.
Element element_of(std::int32_t number, const std::string& what);
std::size_t size_of(Element element);
bool is_floating(Element element);
bool is_signed(Element element);

// The order of a tensor's elements in memory. All but the first are for tensors of 3 to 5 dimensions [N, C, …].
enum class Layout : std::uint8_t {
  row_major,
  channels_last,  // N, then the dimensions of space, then C: NHWC
  blocked8,       // nChw8c: N, blocks of 8 channels, space, the 8 channels; C is a multiple of 8
  blocked16,      // nChw16c
};
std::string_view to_string(Layout layout);

struct TensorType {
  Element element = Element::none;
  Shape shape = {};
  Layout layout = Layout::row_major;

  Index count() const { return program::product(shape); }
  std::size_t bytes() const { return static_cast<std::size_t>(count()) * size_of(element); }
  bool operator==(const TensorType&) const = default;
};
std::string to_string(const TensorType& type);  // "f32 [2, 3]"

// A dense tensor. Copies share the memory, which may be anybody's: the deleter of the pointer says who keeps it.
struct Tensor {
  TensorType type = {};
  std::shared_ptr<std::byte> data = nullptr;  // on a boundary of 64 bytes where we made it; none where it is empty

  Tensor() = default;
  // Takes memory of its own, which is not initialised.
  explicit Tensor(TensorType of);
  Tensor(Element element, Shape shape) : Tensor(TensorType{element, std::move(shape)}) {}
  // Borrows memory that outlives it; `keep` is destroyed with the last copy.
  static Tensor view(TensorType of, const void* memory, std::shared_ptr<const void> keep = nullptr);

  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data.get());
  }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data.get());
  }
};

// What a name of a model stands for while it runs: nearly always a tensor. An optional that is empty has no tensor.
struct Value {
  enum class Kind : std::uint8_t { nothing, tensor, sequence };
  Kind kind = Kind::nothing;
  Tensor tensor = {};
  std::vector<Value> elements = {};  // of a sequence

  Value() = default;
  Value(Tensor of) : kind(Kind::tensor), tensor(std::move(of)) {}  // NOLINT(google-explicit-constructor)
  static Value sequence(std::vector<Value> of);
};

}  // namespace doppler::model
