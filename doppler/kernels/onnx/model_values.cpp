#include "doppler/kernels/onnx/model_values.h"

#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"

namespace doppler::model {
namespace {

using Origin = RunnableModel::Origin;

template <typename T>
void fill(Tensor& tensor, Rng& rng, double low, double high) {
  T* const values = tensor.as<T>();
  for (Index i = 0; i < tensor.type.count(); ++i) values[i] = static_cast<T>(rng.uniform(low, high));
}

// 0 and 1 in the bytes of any integer.
void fill_bits(Tensor& tensor, Rng& rng) {
  const std::size_t size = size_of(tensor.type.element);
  std::fill_n(tensor.data.get(), tensor.type.bytes(), std::byte{0});
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.type.count()); ++i)
    tensor.data.get()[i * size] = static_cast<std::byte>(rng.below(2));
}

// The bits of a half-precision number that is a multiple of 1/64 in [-1, 1), so that both formats hold it exactly.
std::uint16_t half_bits(Element element, float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (element == Element::bf16) return static_cast<std::uint16_t>(bits >> 16);
  if (value == 0) return 0;
  const std::uint32_t exponent = (bits >> 23 & 0xff) - 127 + 15;
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff));
}

// By the name, so that rewriting changes no input (FNV-1a).
std::uint64_t seed_of(const std::string& name, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return mix(seed, hash);
}

Tensor checked(const RunnableModel& model, const RunnableModel::Value& value, const Tensor& given) {
  if (given.type != value.type)
    throw InputError(fmt::format("{}: input '{}': found {}; required {}", model.where, value.name,
                                 to_string(given.type), to_string(value.type)));
  return given;
}

}  // namespace

const Value* OuterNames::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

Tensor draw_tensor(const TensorType& type, bool weight, Index inner, std::uint64_t seed) {
  Tensor tensor(type);
  Rng rng(seed);
  const bool vector = weight && type.shape.size() < 2;
  const double reach = std::sqrt(3.0 / static_cast<double>(inner));
  const double low = vector ? 0.5 : -reach, high = vector ? 1.5 : reach;
  if (type.element == Element::f32) {
    fill<float>(tensor, rng, low, high);
  } else if (type.element == Element::f64) {
    fill<double>(tensor, rng, low, high);
  } else if (is_floating(type.element)) {
    auto* const values = tensor.as<std::uint16_t>();
    for (Index i = 0; i < type.count(); ++i)
      values[i] = half_bits(type.element, static_cast<float>(rng.below(vector ? 64 : 128)) / 64 - (vector ? -0.5F : 1));
  } else {
    fill_bits(tensor, rng);
  }
  return tensor;
}

std::vector<Value> evaluate(const RunnableModel& model, const RunnableModel::Op& op, const std::vector<Value>& inputs,
                            const KernelLibrary& library) {
  std::map<std::string, int> opsets = model.opsets;
  opsets[op.node.domain] = op.opset;
  OuterNames outer;
  if (op.has_body)
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      if (op.inputs[i] != kAbsent) outer.add(model.values[op.inputs[i]].name, inputs[i]);
  std::vector<Value> direct(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(op.node.inputs.size()));
  return library.evaluate(op.node, direct, {.model = nullptr, .opsets = &opsets, .outer = &outer});
}

std::vector<Value> resident_values(const RunnableModel& model, const std::map<std::string, Tensor>& given,
                                   std::uint64_t seed, const KernelLibrary& library) {
  for (const auto& [name, tensor] : given)
    if (model.find_input(name) == kAbsent)
      throw InputError(fmt::format("{}: found a value for '{}'; required the name of an input", model.where, name));
  std::vector<Value> values(model.values.size());
  for (ValueIndex i = 0; i < values.size(); ++i) {
    const RunnableModel::Value& value = model.values[i];
    if (value.origin == Origin::held && value.tensor.type.element != Element::none) values[i] = value.tensor;
    if (value.origin != Origin::input && value.origin != Origin::weight) continue;
    if (value.type.element == Element::none)
      throw InputError(
          fmt::format("{}: input '{}' is text, a sequence or of a type without kernels; required a tensor "
                      "of numbers",
                      model.where, value.name));
    const auto found = given.find(value.name);
    values[i] = found != given.end()
                    ? checked(model, value, found->second)
                    : draw_tensor(value.type, value.origin == Origin::weight, value.inner, seed_of(value.name, seed));
  }
  for (const RunnableModel::Op& op : model.static_ops) {
    std::vector<Value> inputs;
    for (const ValueIndex id : op.inputs) inputs.push_back(id == kAbsent ? Value() : values[id]);
    std::vector<Value> outputs = evaluate(model, op, inputs, library);
    for (std::size_t i = 0; i < op.outputs.size() && i < outputs.size(); ++i)
      if (op.outputs[i] != kAbsent && values[op.outputs[i]].kind == Value::Kind::nothing)
        values[op.outputs[i]] = std::move(outputs[i]);
  }
  return values;
}

}  // namespace doppler::model
