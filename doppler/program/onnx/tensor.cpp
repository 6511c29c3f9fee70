#include "doppler/program/onnx/tensor.h"

#include <array>
#include <new>

#include <fmt/format.h>

#include "doppler/base/error.h"

namespace doppler::model {
namespace {

struct ElementFacts {
  Element element;
  std::string_view name;
  std::size_t size;
  bool floating, with_sign;
};
constexpr std::array<ElementFacts, 13> kElementFacts = {{
    {Element::f32, "f32", 4, true, true},
    {Element::u8, "u8", 1, false, false},
    {Element::i8, "i8", 1, false, true},
    {Element::u16, "u16", 2, false, false},
    {Element::i16, "i16", 2, false, true},
    {Element::i32, "i32", 4, false, true},
    {Element::i64, "i64", 8, false, true},
    {Element::boolean, "bool", 1, false, false},
    {Element::f16, "f16", 2, true, true},
    {Element::f64, "f64", 8, true, true},
    {Element::u32, "u32", 4, false, false},
    {Element::u64, "u64", 8, false, false},
    {Element::bf16, "bf16", 2, true, true},
}};
constexpr ElementFacts kNoElement = {Element::none, "none", 0, false, false};

const ElementFacts& facts_of(Element element) {
  for (const ElementFacts& facts : kElementFacts)
    if (facts.element == element) return facts;
  return kNoElement;
}

constexpr std::align_val_t kTensorAlignment{64};

}  // namespace

std::string_view to_string(Element element) { return facts_of(element).name; }
std::size_t size_of(Element element) { return facts_of(element).size; }
bool is_floating(Element element) { return facts_of(element).floating; }
bool is_signed(Element element) { return facts_of(element).with_sign; }

Element element_of(std::int32_t number, const std::string& what) {
  const ElementFacts& facts = facts_of(static_cast<Element>(number));
  if (facts.element == Element::none)
    throw InputError(
        fmt::format("{}: found element type {} of onnx.proto; required f16, bf16, f32, f64, bool or an integer of 8 to "
                    "64 bits to compute with",
                    what, number));
  return facts.element;
}

std::string_view to_string(Layout layout) {
  constexpr std::array<std::string_view, 4> kNames = {"row-major", "channels-last", "blocked8", "blocked16"};
  return kNames[static_cast<std::size_t>(layout)];
}

std::string to_string(const TensorType& type) {
  std::string text = fmt::format("{} {}", to_string(type.element), program::to_string(type.shape));
  if (type.layout != Layout::row_major) text += fmt::format(" {}", to_string(type.layout));
  return text;
}

Tensor::Tensor(TensorType of) : type(std::move(of)) {
  const std::size_t bytes = type.bytes();
  if (bytes == 0) return;
  data = {static_cast<std::byte*>(::operator new(bytes, kTensorAlignment)),
          [](std::byte* memory) { ::operator delete(memory, kTensorAlignment); }};
}

Tensor Tensor::view(TensorType of, const void* memory, std::shared_ptr<const void> keep) {
  Tensor tensor;
  tensor.type = std::move(of);
  // Nobody writes through a view: kernels read their inputs, and outputs are memory that was handed out for writing.
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(memory));
  tensor.data = {bytes, [keep = std::move(keep)](std::byte*) {}};
  return tensor;
}

Value Value::sequence(std::vector<Value> of) {
  Value value;
  value.kind = Kind::sequence;
  value.elements = std::move(of);
  return value;
}

}  // namespace doppler::model
