#pragma once

#include <functional>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/kernels/onnx/kernel.h"

// What the makers of kernels share: checked access to a node, and a kernel that is a function.

namespace doppler::model {

// Throws InputError "found …; required …". KernelLibrary puts the node before it.
[[noreturn]] void refuse(const std::string& found, const std::string& required);

// Returns "node 'conv1' (Conv)".
std::string describe(const KernelNode& node);

// A node whose kernel is made. Everything that it returns has been checked.
class Spec {
 public:
  explicit Spec(const KernelNode& of) : node(of) {}

  const KernelNode& node;

  std::size_t inputs() const { return node.inputs.size(); }
  bool has(std::size_t input) const { return input < node.inputs.size() && node.inputs[input].type.has_value(); }
  const TensorType& type(std::size_t input) const;  // throws if the input is absent
  const Shape& shape(std::size_t input) const { return type(input).shape; }
  Element element(std::size_t input) const { return type(input).element; }
  std::size_t rank(std::size_t input) const { return shape(input).size(); }
  bool used(std::size_t output) const { return output < node.outputs_used.size() && node.outputs_used[output]; }
  Layout output_layout(std::size_t output) const {
    return output < node.output_layouts.size() ? node.output_layouts[output] : Layout::row_major;
  }

  const Attributes& attributes() const { return node.attributes; }
  Index integer(std::string_view name, Index otherwise) const { return node.attributes.integer(name, otherwise); }
  float real(std::string_view name, float otherwise) const { return node.attributes.real(name, otherwise); }
  std::string text(std::string_view name, const char* otherwise) const { return node.attributes.text(name, otherwise); }

  // These return the value of an input on which shapes depend; they throw if it is not known.
  const Tensor& known(std::size_t input) const;
  std::vector<Index> known_integers(std::size_t input) const;
  std::vector<double> known_reals(std::size_t input) const;
  Index known_integer(std::size_t input) const;  // of one element

  // Returns the axis of a tensor of that rank, counted from its end if negative; throws if there is none.
  Index axis(Index axis, std::size_t rank) const;
  std::vector<Index> axes(const std::vector<Index>& axes, std::size_t rank) const;  // sorted, each once
  // Returns the list from the attribute of that name or, where the operator set made it an input, from there.
  std::optional<std::vector<Index>> attribute_or_input(std::string_view name, std::size_t input) const;

  void require_inputs(std::size_t least, std::size_t most) const;
  void require_rank(std::size_t input, std::size_t least, std::size_t most = 64) const;
  void require_element(std::size_t input, std::initializer_list<Element> elements) const;
  void require_row_major() const;  // every input and output
};

inline constexpr std::size_t kMostDimensions = 32;
// Returns the shape; throws if it has more dimensions than that, a negative size or more elements than we count.
Shape checked_shape(Shape shape);
// Returns the shape that all of them are broadcast to; throws if there is none.
Shape broadcast_shapes(const std::vector<Shape>& shapes);
std::vector<Index> row_major_steps(const Shape& shape);
// Returns the products of the dimensions before `axis`, and of those after.
struct AroundAxis {
  Index before = 1, size = 1, after = 1;
};
AroundAxis around(const Shape& shape, Index axis);

// One run of a kernel.
struct Run {
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* scratch;
  const std::string& where;

  template <typename T>
  const T* in(std::size_t i) const {
    return i < inputs.size() ? reinterpret_cast<const T*>(inputs[i]) : nullptr;
  }
  template <typename T>
  T* out(std::size_t i) const {
    return i < outputs.size() ? reinterpret_cast<T*>(outputs[i]) : nullptr;
  }
};
using Compute = std::function<void(const Run& run)>;

struct KernelTraits {
  std::size_t scratch_bytes = 0;
  std::uint32_t in_place = 0;  // inputs, as bits
  std::uint32_t not_read = 0;  // inputs, as bits
  std::string implementation = "own";
};
std::unique_ptr<NodeKernel> make_function_kernel(const Spec& spec, std::vector<TensorType> outputs, Compute compute,
                                                 KernelTraits traits = {});

// Returns the index in [0, size), counted from the end if negative. Throws InputError naming the node otherwise.
inline Index checked_index(Index index, Index size, const std::string& where) {
  const Index counted = index < 0 ? index + size : index;
  if (counted < 0 || counted >= size) [[unlikely]]
    throw InputError(fmt::format("{}: found index {}; required one from {} to {}", where, index, -size, size - 1));
  return counted;
}

// Calls visit with a value of the type that holds wide elements, which most kernels compute in; KernelLibrary converts
// the others (library.cpp).
template <typename Visit>
decltype(auto) with_wide(Element element, Visit&& visit) {
  switch (element) {
    case Element::f32:
      return visit(float{});
    case Element::f64:
      return visit(double{});
    case Element::i64:
      return visit(std::int64_t{});
    default:
      refuse(fmt::format("a tensor of {}", to_string(element)), "f32, f64 or i64");
  }
}
template <typename Visit>
decltype(auto) with_float(Element element, Visit&& visit) {
  if (element == Element::f32) return visit(float{});
  if (element == Element::f64) return visit(double{});
  refuse(fmt::format("a tensor of {}", to_string(element)), "f32 or f64");
}

using MakeKernel = std::unique_ptr<NodeKernel> (*)(const Spec& spec, PackedWeights* packed);

}  // namespace doppler::model
