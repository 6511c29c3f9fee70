// Quantised tensors. Products of integers are computed in f64, which holds every sum of products of 16 bits exactly.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "doppler/kernels/onnx/convert_elements.h"
#include "doppler/kernels/onnx/matmul.h"
#include "doppler/kernels/onnx/special.h"
#include "doppler/kernels/onnx/window.h"

namespace doppler::model {
namespace {

struct Range {
  double least, most;
};
Range range_of(Element element) {
  switch (element) {
    case Element::u8:
      return {0, 255};
    case Element::i8:
      return {-128, 127};
    case Element::u16:
      return {0, 65535};
    case Element::i16:
      return {-32768, 32767};
    case Element::i32:
      return {-2147483648.0, 2147483647.0};
    default:
      refuse(fmt::format("quantised {}", to_string(element)), "an integer of 8, 16 or 32 bits");
  }
}

double quantized(double value, double zero, const Range& range) {
  return std::clamp(std::nearbyint(value) + zero, range.least, range.most);
}

// Which scale and zero point an element has: one for all, or one per index along an axis.
struct PerAxis {
  Index count = 1, inner = 0;  // index = i / inner % count; inner 0: one for all

  Index of(Index i) const { return inner == 0 ? 0 : i / inner % count; }
};

PerAxis per_axis(const Spec& spec, std::size_t scale, const Shape& shape, Index axis) {
  if (spec.type(scale).count() == 1) return {};
  spec.require_rank(scale, 1, 1);
  const AroundAxis dims = around(shape, spec.axis(axis, shape.size()));
  if (spec.type(scale).count() != dims.size)
    refuse(fmt::format("{} scales for {}", spec.type(scale).count(), program::to_string(shape)),
           fmt::format("1 or {}", dims.size));
  return {dims.size, dims.after};
}

double number_at(Element element, const std::byte* memory, Index i) {
  double value = 0;
  load_elements(element, memory + static_cast<std::size_t>(i) * size_of(element), &value, 1);
  return value;
}

}  // namespace

std::unique_ptr<NodeKernel> make_quantize(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(2, 3);
  const PerAxis which = per_axis(spec, 1, spec.shape(0), spec.integer("axis", 1));
  const Element from = spec.element(0), scale = spec.element(1), to = spec.has(2) ? spec.element(2) : Element::u8;
  if (spec.has(2) && spec.type(2).count() != spec.type(1).count()) refuse("other zero points than scales", "as many");
  const Range range = range_of(to);
  const bool shifted = spec.has(2);
  const Index count = spec.type(0).count();
  return make_function_kernel(spec, {{to, spec.shape(0)}}, [=](const Run& run) {
    for (Index i = 0; i < count; ++i) {
      const Index at = which.of(i);
      const double zero = shifted ? number_at(to, run.inputs[2], at) : 0;
      // The quotient is one of f32, as the standard has it.
      const auto quotient = static_cast<float>(number_at(from, run.inputs[0], i)) /
                            static_cast<float>(number_at(scale, run.inputs[1], at));
      const double value = quantized(static_cast<double>(quotient), zero, range);
      store_elements(to, &value, run.outputs[0] + static_cast<std::size_t>(i) * size_of(to), 1);
    }
  });
}

std::unique_ptr<NodeKernel> make_dequantize(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(2, 3);
  const PerAxis which = per_axis(spec, 1, spec.shape(0), spec.integer("axis", 1));
  const Element from = spec.element(0), to = spec.element(1);
  range_of(from);
  if (!is_floating(to)) refuse(fmt::format("a scale of {}", to_string(to)), "floats");
  if (spec.has(2) && (spec.type(2).count() != spec.type(1).count() || spec.element(2) != from))
    refuse("other zero points than scales", "as many, of the data's type");
  const bool shifted = spec.has(2);
  const Index count = spec.type(0).count();
  return make_function_kernel(spec, {{to, spec.shape(0)}}, [=](const Run& run) {
    for (Index i = 0; i < count; ++i) {
      const Index at = which.of(i);
      const double zero = shifted ? number_at(from, run.inputs[2], at) : 0;
      const double value = (number_at(from, run.inputs[0], i) - zero) * number_at(to, run.inputs[1], at);
      store_elements(to, &value, run.outputs[0] + static_cast<std::size_t>(i) * size_of(to), 1);
    }
  });
}

std::unique_ptr<NodeKernel> make_dynamic_quantize(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 1);
  spec.require_element(0, {Element::f32});
  const Index count = spec.type(0).count();
  std::vector<TensorType> outputs = {{Element::u8, spec.shape(0)}, {Element::f32, {}}, {Element::u8, {}}};
  return make_function_kernel(spec, outputs, [=](const Run& run) {
    const float* x = run.in<float>(0);
    float least = 0, most = 0;  // zero is always in the range
    for (Index i = 0; i < count; ++i) {
      least = std::min(least, x[i]);
      most = std::max(most, x[i]);
    }
    const float scale = most == least ? 1.0F : (most - least) / 255.0F;
    const double zero = quantized(static_cast<double>(-least / scale), 0, range_of(Element::u8));
    for (Index i = 0; i < count && run.outputs[0] != nullptr; ++i)
      run.out<std::uint8_t>(0)[i] =
          static_cast<std::uint8_t>(quantized(static_cast<double>(x[i] / scale), zero, range_of(Element::u8)));
    if (float* out = run.out<float>(1)) *out = scale;
    if (auto* out = run.out<std::uint8_t>(2)) *out = static_cast<std::uint8_t>(zero);
  });
}

namespace {

// An integer operand of a product that is computed in f64, its zero point taken off.
struct IntegerOperand {
  std::size_t data, zero;  // inputs
  Element element = Element::none;
  Index count = 0;
  bool shifted = false;
  PerAxis which = {};
  std::size_t at = 0;  // in scratch memory
};

struct IntegerProduct {
  std::shared_ptr<NodeKernel> product;
  IntegerOperand a, b;
  std::size_t out_at, scratch_at, bytes;
  TensorType out;

  void run(const Run& run) const {
    for (const IntegerOperand& operand : {a, b}) {
      auto* to = reinterpret_cast<double*>(run.scratch + operand.at);
      load_elements(operand.element, run.inputs[operand.data], to, static_cast<std::size_t>(operand.count));
      if (!operand.shifted) continue;
      for (Index i = 0; i < operand.count; ++i)
        to[i] -= number_at(operand.element, run.inputs[operand.zero], operand.which.of(i));
    }
    const std::array<const std::byte*, 2> from = {run.scratch + a.at, run.scratch + b.at};
    const std::array<std::byte*, 1> to = {run.scratch + out_at};
    product->run(from, to, run.scratch + scratch_at);
  }
};

std::size_t padded_doubles(Index count) { return (static_cast<std::size_t>(count) * sizeof(double) + 63) / 64 * 64; }

IntegerProduct integer_product(const Spec& spec, bool conv, IntegerOperand a, IntegerOperand b) {
  KernelNode inner{.name = spec.node.name, .op_type = conv ? "Conv" : "MatMul", .attributes = spec.attributes()};
  std::size_t at = 0;
  for (IntegerOperand* operand : {&a, &b}) {
    const TensorType& type = spec.type(operand->data);
    range_of(type.element);
    operand->element = type.element;
    operand->count = type.count();
    operand->shifted = spec.has(operand->zero);
    operand->at = at;
    at += padded_doubles(type.count());
    inner.inputs.push_back({TensorType{Element::f64, type.shape}});
    if (!operand->shifted) continue;
    if (spec.element(operand->zero) != type.element) refuse("a zero point of another type", "that of its tensor");
    // Weights of a convolution have zero points by rows, matrices A by rows and B by columns.
    const auto rank = static_cast<Index>(type.shape.size());
    const Index axis = conv ? 0 : operand == &a ? rank - 2 : rank - 1;
    if (conv && operand == &a && spec.type(operand->zero).count() != 1) refuse("several zero points of data", "one");
    operand->which = per_axis(spec, operand->zero, type.shape, axis);
  }
  std::shared_ptr<NodeKernel> product = conv ? make_conv(Spec(inner), nullptr) : make_matmul(Spec(inner), nullptr);
  const TensorType out = product->outputs()[0];
  const std::size_t scratch_at = at + padded_doubles(out.count());
  const std::size_t bytes = scratch_at + product->scratch_bytes();
  return {std::move(product), a, b, at, scratch_at, bytes, out};
}

}  // namespace

std::unique_ptr<NodeKernel> make_integer_product(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(2, 4);
  const bool conv = spec.node.op_type == "ConvInteger";
  const IntegerProduct product = integer_product(spec, conv, {.data = 0, .zero = 2}, {.data = 1, .zero = 3});
  return make_function_kernel(spec, {{Element::i32, product.out.shape}},
                              [product](const Run& run) {
                                product.run(run);
                                store_elements(Element::i32,
                                               reinterpret_cast<const double*>(run.scratch + product.out_at),
                                               run.outputs[0], static_cast<std::size_t>(product.out.count()));
                              },
                              {.scratch_bytes = product.bytes});
}

std::unique_ptr<NodeKernel> make_quantized_product(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  const bool conv = spec.node.op_type == "QLinearConv";
  spec.require_inputs(8, conv ? 9 : 8);
  // Inputs: a, its scale and zero point; b, its scale and zero point; scale and zero point of the output; a bias.
  const IntegerProduct product = integer_product(spec, conv, {.data = 0, .zero = 2}, {.data = 3, .zero = 5});
  const auto rank = static_cast<Index>(product.out.shape.size());
  const PerAxis b_scale = per_axis(spec, 4, product.out.shape, conv ? 1 : rank - 1);
  const PerAxis a_scale = per_axis(spec, 1, product.out.shape, conv ? 0 : rank - 2);
  if (spec.type(6).count() != 1 || spec.type(7).count() != 1 || (conv && spec.type(1).count() != 1))
    refuse("several scales of data or output", "one");
  for (const std::size_t i : {1, 4, 6}) spec.require_element(i, {Element::f32});
  const Element to = spec.element(7);
  const Range range = range_of(to);
  const bool biased = conv && spec.has(8);
  const Index count = product.out.count(), channels = conv ? product.out.shape[1] : 1;
  const Index inner = conv ? around(product.out.shape, 1).after : 1;
  if (biased) {
    spec.require_element(8, {Element::i32});
    if (spec.shape(8) != Shape{channels}) refuse("a bias of another size", fmt::format("[{}]", channels));
  }
  return make_function_kernel(spec, {{to, product.out.shape}},
                              [=](const Run& run) {
                                product.run(run);
                                auto* sums = reinterpret_cast<double*>(run.scratch + product.out_at);
                                const double zero = number_at(to, run.inputs[7], 0),
                                             out_scale = static_cast<double>(*run.in<float>(6));
                                for (Index i = 0; i < count; ++i) {
                                  const double scale = static_cast<double>(run.in<float>(1)[a_scale.of(i)]) *
                                                       static_cast<double>(run.in<float>(4)[b_scale.of(i)]) / out_scale;
                                  if (biased) sums[i] += run.in<std::int32_t>(8)[i / inner % channels];
                                  sums[i] = quantized(sums[i] * scale, zero, range);
                                }
                                store_elements(to, sums, run.outputs[0], static_cast<std::size_t>(count));
                              },
                              {.scratch_bytes = product.bytes});
}

}  // namespace doppler::model
