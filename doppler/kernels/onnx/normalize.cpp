#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "doppler/kernels/onnx/loops.h"
#include "doppler/kernels/onnx/reduce.h"

namespace doppler::model {
namespace {

enum class SoftKind : std::uint8_t { softmax, log_softmax, hardmax };

// In place too, but for the hardmax.
template <typename T>
void soft_row(SoftKind kind, const T* x, T* out, std::size_t n, T* exponentials) {
  const auto& loops = float_loops<T>();
  const T largest = loops.max(x, n);
  if (kind == SoftKind::softmax) {
    const T sum = loops.exp_and_sum(x, out, n, T(1), largest);
    loops.scale_and_shift(out, out, n, T(1) / sum, T(0));
  } else if (kind == SoftKind::log_softmax) {
    const T sum = loops.exp_and_sum(x, exponentials, n, T(1), largest);
    loops.scale_and_shift(x, out, n, T(1), -largest - std::log(sum));
  } else {
    const auto first = static_cast<std::size_t>(std::max_element(x, x + n) - x);
    std::fill_n(out, n, T(0));
    out[first] = T(1);
  }
}

// Normalises a row to mean 0 and variance 1, then scales it. Returns what the statistics were.
template <typename T>
struct RowStatistics {
  T mean, factor;
};
template <typename T>
RowStatistics<T> normalize_row(const T* x, T* out, std::size_t n, T epsilon, const T* scale, const T* bias) {
  const auto& loops = float_loops<T>();
  const T mean = loops.sum(x, n) / static_cast<T>(n);
  const T variance = loops.sum_of_deviations(x, n, mean) / static_cast<T>(n);
  const T factor = T(1) / std::sqrt(variance + epsilon);
  loops.normalize(x, out, n, mean, factor, scale, bias);
  return {mean, factor};
}

// A vector of that many elements along an axis.
void require_vector(const Spec& spec, std::size_t input, Index size) {
  if (spec.type(input).count() != size || spec.element(input) != spec.element(0))
    refuse(fmt::format("input {} of {}", input, to_string(spec.type(input))),
           fmt::format("{} [{}]", to_string(spec.element(0)), size));
}

struct Rows {
  Index count, length;
};
Rows rows_from(const Spec& spec, Index axis) {
  const AroundAxis dims = around(spec.shape(0), axis);
  return {dims.before, dims.size * dims.after};
}

}  // namespace

std::unique_ptr<NodeKernel> make_softmax(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 1);
  const std::string& op = spec.node.op_type;
  const SoftKind kind = op == "Softmax"      ? SoftKind::softmax
                        : op == "LogSoftmax" ? SoftKind::log_softmax
                                             : SoftKind::hardmax;
  // Before operator set 13 the tensor was a matrix of which `axis` was the first column.
  const bool as_matrix = spec.node.opset < 13;
  AroundAxis dims;
  if (spec.rank(0) > 0) {
    const Index axis = spec.axis(spec.integer("axis", as_matrix ? 1 : -1), spec.rank(0));
    dims = around(spec.shape(0), axis);
  }
  if (as_matrix) dims = {dims.before, dims.size * dims.after, 1};
  const auto n = static_cast<std::size_t>(dims.size);
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {spec.type(0)},
                                [=](const Run& run) {
                                  if (n == 0) return;
                                  T* row = reinterpret_cast<T*>(run.scratch);
                                  T* exponentials = row + n;
                                  for (Index b = 0; b < dims.before; ++b)
                                    for (Index a = 0; a < dims.after; ++a) {
                                      const Index first = b * dims.size * dims.after + a;
                                      const T* x = run.in<T>(0) + first;
                                      T* out = run.out<T>(0) + first;
                                      if (dims.after == 1) {
                                        soft_row(kind, x, out, n, exponentials);
                                        continue;
                                      }
                                      for (Index i = 0; i < dims.size; ++i) row[i] = x[i * dims.after];
                                      T* result = kind == SoftKind::log_softmax ? row : exponentials;
                                      soft_row(kind, row, result, n, exponentials);
                                      for (Index i = 0; i < dims.size; ++i) out[i * dims.after] = result[i];
                                    }
                                },
                                {.scratch_bytes = 2 * n * sizeof(T), .in_place = kind == SoftKind::hardmax ? 0U : 1U});
  });
}

std::unique_ptr<NodeKernel> make_layer_norm(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(2, 3);
  const Index axis = spec.axis(spec.integer("axis", -1), spec.rank(0));
  const Rows rows = rows_from(spec, axis);
  require_vector(spec, 1, rows.length);
  if (spec.has(2)) require_vector(spec, 2, rows.length);
  Shape statistics = spec.shape(0);
  std::fill(statistics.begin() + axis, statistics.end(), 1);
  std::vector<TensorType> outputs = {spec.type(0)};
  for (std::size_t i = 1; i < spec.node.outputs_used.size() && i < 3; ++i)
    outputs.push_back({spec.used(i) ? spec.element(0) : Element::none, statistics});
  const float epsilon = spec.real("epsilon", 1e-5F);
  const bool biased = spec.has(2);
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, outputs,
                                [=](const Run& run) {
                                  for (Index r = 0; r < rows.count; ++r) {
                                    const auto found =
                                        normalize_row(run.in<T>(0) + r * rows.length, run.out<T>(0) + r * rows.length,
                                                      static_cast<std::size_t>(rows.length), static_cast<T>(epsilon),
                                                      run.in<T>(1), biased ? run.in<T>(2) : nullptr);
                                    if (T* means = run.out<T>(1)) means[r] = found.mean;
                                    if (T* factors = run.out<T>(2)) factors[r] = found.factor;
                                  }
                                },
                                {.in_place = 1});
  });
}

// Ours has inputs X, skip, scale, bias, added bias and outputs the norm and the sum. That of com.microsoft has the sum
// as its fourth output.
std::unique_ptr<NodeKernel> make_skip_layer_norm(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(3, 5);
  const Index axis = spec.axis(spec.integer("axis", -1), spec.rank(0));
  const Rows rows = rows_from(spec, axis);
  if (spec.shape(1) != spec.shape(0) || spec.element(1) != spec.element(0))
    refuse(fmt::format("X and skip of {} and {}", to_string(spec.type(0)), to_string(spec.type(1))), "the same");
  for (std::size_t i = 2; i < spec.inputs(); ++i)
    if (spec.has(i)) require_vector(spec, i, rows.length);
  const bool simplified = spec.node.op_type == "SkipSimplifiedLayerNormalization";
  const std::size_t sum_output = spec.node.domain == "com.microsoft" ? 3 : 1;
  std::vector<TensorType> outputs(std::max<std::size_t>(1, spec.node.outputs_used.size()),
                                  TensorType{Element::none, {}});
  outputs[0] = spec.type(0);
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    if (!spec.used(i)) continue;
    if (i != sum_output) refuse(fmt::format("output {} in use", i), "the norm and the sum alone");
    outputs[i] = spec.type(0);
  }
  const float epsilon = spec.real("epsilon", 1e-12F);
  // The simplified form has no bias of the norm: its fourth input is the added one.
  const std::size_t bias = simplified ? 32 : 3, added = simplified ? 3 : 4;
  const bool biased = spec.has(bias), adds = spec.has(added);
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(
        spec, outputs,
        [=](const Run& run) {
          const auto& loops = float_loops<T>();
          const auto add = loops.binary[static_cast<std::size_t>(Binary::add)];
          const auto n = static_cast<std::size_t>(rows.length);
          T* sums = run.out<T>(sum_output);
          for (Index r = 0; r < rows.count; ++r) {
            const Index first = r * rows.length;
            T* sum = sums != nullptr ? sums + first : reinterpret_cast<T*>(run.scratch);
            add(run.in<T>(0) + first, run.in<T>(1) + first, sum, n, Scalar::none);
            if (adds) add(sum, run.in<T>(added), sum, n, Scalar::none);
            T* out = run.out<T>(0) + first;
            if (simplified) {
              const T mean_square = loops.sum_of_squares(sum, n) / static_cast<T>(n);
              loops.normalize(sum, out, n, T(0), T(1) / std::sqrt(mean_square + static_cast<T>(epsilon)), run.in<T>(2),
                              nullptr);
            } else {
              normalize_row(sum, out, n, static_cast<T>(epsilon), run.in<T>(2), biased ? run.in<T>(bias) : nullptr);
            }
          }
        },
        {.scratch_bytes = static_cast<std::size_t>(rows.length) * sizeof(T), .in_place = 3});
  });
}

// RMSNormalization, and SimplifiedLayerNormalization of ONNX Runtime.
std::unique_ptr<NodeKernel> make_rms_norm(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(2, 2);
  const Rows rows = rows_from(spec, spec.axis(spec.integer("axis", -1), spec.rank(0)));
  require_vector(spec, 1, rows.length);
  if (spec.used(1)) refuse("output 1 in use", "the norm alone");
  const float epsilon = spec.real("epsilon", 1e-5F);
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {spec.type(0)},
                                [=](const Run& run) {
                                  const auto& loops = float_loops<T>();
                                  const auto n = static_cast<std::size_t>(rows.length);
                                  for (Index r = 0; r < rows.count; ++r) {
                                    const T* x = run.in<T>(0) + r * rows.length;
                                    const T mean_square = loops.sum_of_squares(x, n) / static_cast<T>(n);
                                    loops.normalize(x, run.out<T>(0) + r * rows.length, n, T(0),
                                                    T(1) / std::sqrt(mean_square + static_cast<T>(epsilon)),
                                                    run.in<T>(1), nullptr);
                                  }
                                },
                                {.in_place = 1});
  });
}

std::unique_ptr<NodeKernel> make_batch_norm(const Spec& spec, PackedWeights*) {
  spec.require_inputs(5, 5);
  spec.require_rank(0, 2);
  const Shape& shape = spec.shape(0);
  const Index channels = shape[1], space = around(shape, 1).after;
  for (std::size_t i = 1; i < 5; ++i) require_vector(spec, i, channels);
  const Layout layout = spec.type(0).layout;
  if (layout != spec.output_layout(0) || (layout != Layout::row_major && layout != Layout::channels_last))
    refuse(fmt::format("layout {}", to_string(layout)), "row-major or channels-last, in and out");
  const bool training = spec.integer("training_mode", 0) != 0;
  const float epsilon = spec.real("epsilon", 1e-5F), momentum = spec.real("momentum", 0.9F);
  std::vector<TensorType> outputs = {spec.type(0)};
  for (std::size_t i = 1; i < spec.node.outputs_used.size(); ++i) {
    if (spec.used(i) && (!training || i > 2)) refuse(fmt::format("output {} in use", i), "training_mode 1 for it");
    outputs.push_back({spec.used(i) ? spec.element(0) : Element::none, {channels}});
  }
  if (training && layout != Layout::row_major) refuse("training in another layout", "row-major");
  const Index batch = shape[0];
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    const auto n = static_cast<std::size_t>(space);
    return make_function_kernel(
        spec, outputs,
        [=](const Run& run) {
          const auto& loops = float_loops<T>();
          T* factor = reinterpret_cast<T*>(run.scratch);
          T* shift = factor + channels;
          for (Index c = 0; c < channels; ++c) {
            T mean = run.in<T>(3)[c], variance = run.in<T>(4)[c];
            if (training) {
              T sum = 0, squares = 0;
              for (Index b = 0; b < batch; ++b) sum += loops.sum(run.in<T>(0) + (b * channels + c) * space, n);
              const auto count = static_cast<T>(batch * space);
              for (Index b = 0; b < batch; ++b)
                squares += loops.sum_of_deviations(run.in<T>(0) + (b * channels + c) * space, n, sum / count);
              const T kept = static_cast<T>(momentum);
              if (T* means = run.out<T>(1)) means[c] = mean * kept + sum / count * (1 - kept);
              if (T* variances = run.out<T>(2)) variances[c] = variance * kept + squares / count * (1 - kept);
              mean = sum / count;
              variance = squares / count;
            }
            factor[c] = run.in<T>(1)[c] / std::sqrt(variance + static_cast<T>(epsilon));
            shift[c] = run.in<T>(2)[c] - mean * factor[c];
          }
          for (Index b = 0; b < batch; ++b) {
            if (layout == Layout::channels_last) {
              for (Index s = 0; s < space; ++s) {
                const Index at = (b * space + s) * channels;
                loops.scale_and_shift_each(run.in<T>(0) + at, run.out<T>(0) + at, static_cast<std::size_t>(channels),
                                           factor, shift);
              }
              continue;
            }
            for (Index c = 0; c < channels; ++c) {
              const Index at = (b * channels + c) * space;
              loops.scale_and_shift(run.in<T>(0) + at, run.out<T>(0) + at, n, factor[c], shift[c]);
            }
          }
        },
        {.scratch_bytes = 2 * static_cast<std::size_t>(channels) * sizeof(T), .in_place = 1});
  });
}

std::vector<LayoutChoice> batch_norm_layouts(const Spec& spec) {
  if (spec.rank(0) < 3 || spec.rank(0) > 5) return {};
  return {{{Layout::channels_last}, {Layout::channels_last}}};
}

std::unique_ptr<NodeKernel> make_instance_norm(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(3, 3);
  spec.require_rank(0, 3, kMostDimensions);
  const Index channels = spec.shape(0)[1], space = around(spec.shape(0), 1).after, batch = spec.shape(0)[0];
  require_vector(spec, 1, channels);
  require_vector(spec, 2, channels);
  const float epsilon = spec.real("epsilon", 1e-5F);
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(
        spec, {spec.type(0)},
        [=](const Run& run) {
          const auto n = static_cast<std::size_t>(space);
          for (Index i = 0; i < batch * channels; ++i) {
            T* out = run.out<T>(0) + i * space;
            normalize_row<T>(run.in<T>(0) + i * space, out, n, static_cast<T>(epsilon), nullptr, nullptr);
            float_loops<T>().scale_and_shift(out, out, n, run.in<T>(1)[i % channels], run.in<T>(2)[i % channels]);
          }
        },
        {.in_place = 1});
  });
}

std::unique_ptr<NodeKernel> make_group_norm(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(3, 3);
  spec.require_rank(0, 3, kMostDimensions);
  const Index channels = spec.shape(0)[1], space = around(spec.shape(0), 1).after, batch = spec.shape(0)[0];
  const Index groups = spec.integer("num_groups", 0);
  if (groups < 1 || channels % groups != 0)
    refuse(fmt::format("{} groups of {} channels", groups, channels), "a divisor");
  // Until operator set 21 scale and bias were those of groups.
  const bool per_group = spec.type(1).count() == groups && spec.node.opset < 21;
  for (const std::size_t i : {1, 2}) require_vector(spec, i, per_group ? groups : channels);
  const float epsilon = spec.real("epsilon", 1e-5F);
  const Index size = channels / groups;
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(
        spec, {spec.type(0)},
        [=](const Run& run) {
          for (Index g = 0; g < batch * groups; ++g) {
            T* out = run.out<T>(0) + g * size * space;
            normalize_row<T>(run.in<T>(0) + g * size * space, out, static_cast<std::size_t>(size * space),
                             static_cast<T>(epsilon), nullptr, nullptr);
            for (Index c = 0; c < size; ++c) {
              const Index at = per_group ? g % groups : g % groups * size + c;
              float_loops<T>().scale_and_shift(out + c * space, out + c * space, static_cast<std::size_t>(space),
                                               run.in<T>(1)[at], run.in<T>(2)[at]);
            }
          }
        },
        {.in_place = 1});
  });
}

}  // namespace doppler::model
