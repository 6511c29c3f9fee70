#include "doppler/kernels/onnx/creation.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "doppler/kernels/onnx/broadcast.h"
#include "doppler/kernels/onnx/convert_elements.h"
#include "doppler/kernels/onnx/elementwise.h"
#include "doppler/kernels/onnx/strided.h"

namespace doppler::model {
namespace {

// A kernel that writes what is known when it is made.
std::unique_ptr<NodeKernel> make_fixed(const Spec& spec, Tensor value, std::uint32_t not_read = ~0U) {
  return make_function_kernel(spec, {value.type},
                              [value](const Run& run) {
                                if (value.data != nullptr)
                                  std::memcpy(run.outputs[0], value.data.get(), value.type.bytes());
                              },
                              {.not_read = not_read});
}

template <typename T>
Tensor list_tensor(Element element, const std::vector<T>& values, bool scalar = false) {
  Tensor tensor(element, scalar ? Shape{} : Shape{static_cast<Index>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<T>());
  return tensor;
}

}  // namespace

std::unique_ptr<NodeKernel> make_constant(const Spec& spec, PackedWeights*) {
  const Attributes& attributes = spec.attributes();
  if (const Tensor* value = attributes.tensor("value")) return make_fixed(spec, *value);
  if (attributes.has("value_int"))
    return make_fixed(spec, list_tensor<Index>(Element::i64, {attributes.integer("value_int", 0)}, true));
  if (attributes.has("value_float"))
    return make_fixed(spec, list_tensor<float>(Element::f32, {attributes.real("value_float", 0)}, true));
  if (const auto values = attributes.integers("value_ints"))
    return make_fixed(spec, list_tensor(Element::i64, *values));
  if (const auto values = attributes.reals("value_floats")) return make_fixed(spec, list_tensor(Element::f32, *values));
  refuse("no value that can be computed with", "a tensor, integers or floats");
}

std::unique_ptr<NodeKernel> make_shape(const Spec& spec, PackedWeights*) {
  spec.require_inputs(1, 1);
  const Shape& shape = spec.shape(0);
  const auto rank = static_cast<Index>(shape.size());
  const auto bound = [&](Index at) { return std::clamp<Index>(at < 0 ? at + rank : at, 0, rank); };
  const Index start = bound(std::clamp(spec.integer("start", 0), -rank, rank));
  const Index end = bound(std::clamp(spec.integer("end", rank), -rank, rank));
  return make_fixed(
      spec, list_tensor<Index>(Element::i64, Shape(shape.begin() + start, shape.begin() + std::max(start, end))));
}

std::unique_ptr<NodeKernel> make_size(const Spec& spec, PackedWeights*) {
  spec.require_inputs(1, 1);
  return make_fixed(spec, list_tensor<Index>(Element::i64, {spec.type(0).count()}, true));
}

std::unique_ptr<NodeKernel> make_constant_of_shape(const Spec& spec, PackedWeights*) {
  spec.require_inputs(1, 1);
  Tensor value(Element::f32, Shape{});
  *value.as<float>() = 0;
  if (const Tensor* given = spec.attributes().tensor("value")) {
    if (given->type.count() != 1) refuse(fmt::format("a value of {}", to_string(given->type)), "one element");
    value = *given;
  }
  const Shape shape = checked_shape(spec.known_integers(0));
  const StridedCopy fill(size_of(value.type.element), {program::product(shape)}, {0}, {1});
  return make_function_kernel(spec, {{value.type.element, shape}},
                              [=](const Run& run) { fill.run(value.data.get(), run.outputs[0]); }, {.not_read = ~0U});
}

std::unique_ptr<NodeKernel> make_range(const Spec& spec, PackedWeights*) {
  spec.require_inputs(3, 3);
  for (std::size_t i = 0; i < 3; ++i)
    if (spec.type(i).count() != 1 || spec.element(i) != spec.element(0)) refuse("no three numbers", "of one type");
  return with_wide(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    const T start = *spec.known(0).as<T>(), limit = *spec.known(1).as<T>(), delta = *spec.known(2).as<T>();
    if (delta == T{}) refuse("a step of 0", "another");
    const double count =
        std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta));
    if (!(count < 1e15)) refuse("a range that does not end", "an end");
    const auto size = static_cast<Index>(std::max(0.0, count));
    using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;  // integers wrap
    return make_function_kernel(
        spec, {{spec.element(0), {size}}},
        [=](const Run& run) {
          for (Index i = 0; i < size; ++i)
            run.out<T>(0)[i] = static_cast<T>(static_cast<Sum>(start) + static_cast<Sum>(i) * static_cast<Sum>(delta));
        },
        {.not_read = ~0U});
  });
}

std::unique_ptr<NodeKernel> make_eye_like(const Spec& spec, PackedWeights*) {
  spec.require_inputs(1, 1);
  spec.require_rank(0, 2, 2);
  const Index given = spec.integer("dtype", static_cast<Index>(spec.element(0)));
  const Element element = element_of(static_cast<std::int32_t>(given), "dtype");
  const Index rows = spec.shape(0)[0], columns = spec.shape(0)[1];
  const Index shift = std::clamp(spec.integer("k", 0), -rows, columns);
  const std::size_t bytes = size_of(element);
  return make_function_kernel(spec, {{element, spec.shape(0)}},
                              [=](const Run& run) {
                                if (rows * columns == 0) return;
                                std::memset(run.outputs[0], 0, static_cast<std::size_t>(rows * columns) * bytes);
                                const Index one = 1;
                                for (Index r = 0; r < rows; ++r)
                                  if (r + shift >= 0 && r + shift < columns)
                                    store_elements(
                                        element, &one,
                                        run.outputs[0] + static_cast<std::size_t>(r * columns + r + shift) * bytes, 1);
                              },
                              {.not_read = ~0U});
}

std::unique_ptr<NodeKernel> make_trilu(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 2);
  spec.require_rank(0, 2, kMostDimensions);
  const bool upper = spec.integer("upper", 1) != 0, shifts = spec.has(1);
  if (shifts) spec.require_element(1, {Element::i64});
  if (shifts && spec.type(1).count() != 1) refuse("no single k", "one number");
  const Shape& shape = spec.shape(0);
  const Index columns = shape.back(), rows = shape[shape.size() - 2];
  Index matrices = 1;
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) matrices *= shape[i];
  const std::size_t bytes = size_of(spec.element(0));
  return make_function_kernel(spec, {{spec.element(0), shape}}, [=](const Run& run) {
    const Index k = std::clamp(shifts ? *run.in<Index>(1) : 0, -rows - 1, columns + 1);
    for (Index m = 0; m < matrices; ++m)
      for (Index r = 0; r < rows; ++r) {
        const std::size_t at = static_cast<std::size_t>((m * rows + r) * columns) * bytes;
        // Columns from `r + k` on are the upper triangle; the lower one ends with that column.
        const Index bound = std::clamp<Index>(upper ? r + k : r + k + 1, 0, columns);
        const std::size_t first = static_cast<std::size_t>(bound) * bytes,
                          rest = static_cast<std::size_t>(columns - bound) * bytes;
        if (columns == 0) continue;
        std::memcpy(run.outputs[0] + at, run.inputs[0] + at, first + rest);
        std::memset(run.outputs[0] + at + (upper ? 0 : first), 0, upper ? first : rest);
      }
  });
}

std::unique_ptr<NodeKernel> make_det(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 1);
  spec.require_rank(0, 2, kMostDimensions);
  const Shape& shape = spec.shape(0);
  const Index n = shape.back();
  if (shape[shape.size() - 2] != n) refuse(program::to_string(shape), "square matrices");
  const Shape out(shape.begin(), shape.end() - 2);
  const Index matrices = program::product(out);
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {{spec.element(0), out}},
                                [=](const Run& run) {
                                  auto* a = reinterpret_cast<double*>(run.scratch);
                                  for (Index m = 0; m < matrices; ++m) {
                                    std::copy_n(run.in<T>(0) + m * n * n, n * n, a);
                                    double det = 1;
                                    // Gaussian elimination with the largest pivot of each column.
                                    for (Index c = 0; c < n; ++c) {
                                      Index pivot = c;
                                      for (Index r = c + 1; r < n; ++r)
                                        if (std::abs(a[r * n + c]) > std::abs(a[pivot * n + c])) pivot = r;
                                      if (pivot != c) {
                                        std::swap_ranges(a + c * n, a + (c + 1) * n, a + pivot * n);
                                        det = -det;
                                      }
                                      det *= a[c * n + c];
                                      if (a[c * n + c] == 0) break;
                                      for (Index r = c + 1; r < n; ++r) {
                                        const double factor = a[r * n + c] / a[c * n + c];
                                        for (Index i = c; i < n; ++i) a[r * n + i] -= factor * a[c * n + i];
                                      }
                                    }
                                    run.out<T>(0)[m] = static_cast<T>(det);
                                  }
                                },
                                {.scratch_bytes = static_cast<std::size_t>(n * n) * sizeof(double)});
  });
}

std::unique_ptr<NodeKernel> make_where(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(3, 3);
  spec.require_element(0, {Element::boolean});
  spec.require_element(2, {spec.element(1)});
  const Shape out = broadcast_shapes({spec.shape(0), spec.shape(1), spec.shape(2)});
  const BroadcastWalk<3> walk(out, {spec.shape(0), spec.shape(1), spec.shape(2)});
  const auto kernel = [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {{spec.element(1), out}}, [walk](const Run& run) {
      const Index n = walk.row(), c_step = walk.steps[0].back(), a_step = walk.steps[1].back(),
                  b_step = walk.steps[2].back();
      walk.for_each_row([&](const auto& at, Index first) {
        const auto* c = run.in<std::uint8_t>(0) + at[0];
        const T *a = run.in<T>(1) + at[1], *b = run.in<T>(2) + at[2];
        T* to = run.out<T>(0) + first;
        for (Index i = 0; i < n; ++i) to[i] = c[i * c_step] != 0 ? a[i * a_step] : b[i * b_step];
      });
    });
  };
  switch (size_of(spec.element(1))) {
    case 1:
      return kernel(std::uint8_t{});
    case 2:
      return kernel(std::uint16_t{});
    case 4:
      return kernel(std::uint32_t{});
    default:
      return kernel(std::uint64_t{});
  }
}

std::unique_ptr<NodeKernel> make_cast(const Spec& spec, PackedWeights*) {
  const bool like = spec.node.op_type == "CastLike";
  spec.require_inputs(like ? 2 : 1, like ? 2 : 1);
  const Element to =
      like ? spec.element(1) : element_of(static_cast<std::int32_t>(spec.integer("to", 0)), "attribute 'to'");
  const Element from = spec.element(0);
  if (spec.type(0).layout != spec.output_layout(0)) refuse("another layout of the output", "that of the input");
  const auto count = static_cast<std::size_t>(spec.type(0).count());
  return make_function_kernel(spec, {{to, spec.shape(0), spec.type(0).layout}},
                              [=](const Run& run) { cast_elements(from, run.inputs[0], to, run.outputs[0], count); },
                              {.not_read = ~1U});
}

}  // namespace doppler::model
