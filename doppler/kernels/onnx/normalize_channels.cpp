// Normalisations that few models have.

#include <algorithm>
#include <cmath>

#include "doppler/kernels/onnx/broadcast.h"
#include "doppler/kernels/onnx/elementwise.h"
#include "doppler/kernels/onnx/reduce.h"
#include "doppler/kernels/onnx/special.h"

namespace doppler::model {

std::unique_ptr<NodeKernel> make_mean_variance(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 1);
  const Shape& shape = spec.shape(0);
  const std::vector<Index> axes =
      spec.axes(spec.attributes().integers("axes").value_or(std::vector<Index>{0, 2, 3}), shape.size());
  Shape kept = shape;
  Index each = 1;
  for (const Index axis : axes) {
    each *= shape[static_cast<std::size_t>(axis)];
    kept[static_cast<std::size_t>(axis)] = 1;
  }
  const BroadcastWalk<1> walk(shape, {kept});
  const Index groups = program::product(kept);
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {spec.type(0)},
                                [=](const Run& run) {
                                  auto* sums = reinterpret_cast<double*>(run.scratch);
                                  double* squares = sums + groups;
                                  std::fill_n(sums, 2 * groups, 0.0);
                                  const Index n = walk.row(), step = walk.steps[0].back();
                                  const auto for_each = [&](auto visit) {
                                    walk.for_each_row([&](const auto& at, Index first) {
                                      for (Index i = 0; i < n; ++i) visit(at[0] + i * step, first + i);
                                    });
                                  };
                                  const T* x = run.in<T>(0);
                                  for_each([&](Index group, Index i) { sums[group] += static_cast<double>(x[i]); });
                                  for (Index g = 0; g < groups; ++g) sums[g] /= static_cast<double>(each);
                                  for_each([&](Index group, Index i) {
                                    const double away = static_cast<double>(x[i]) - sums[group];
                                    squares[group] += away * away;
                                  });
                                  // The small number is that of ONNX's own definition.
                                  for_each([&](Index group, Index i) {
                                    const double deviation = std::sqrt(squares[group] / static_cast<double>(each));
                                    run.out<T>(0)[i] =
                                        static_cast<T>((static_cast<double>(x[i]) - sums[group]) / (deviation + 1e-9));
                                  });
                                },
                                {.scratch_bytes = 2 * static_cast<std::size_t>(groups) * sizeof(double)});
  });
}

std::unique_ptr<NodeKernel> make_lrn(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 1);
  spec.require_rank(0, 2, kMostDimensions);
  const Index size = spec.integer("size", 0);
  if (size < 1) refuse(fmt::format("size {}", size), "1 or more");
  const Shape& shape = spec.shape(0);
  const Index batch = shape[0], channels = shape[1], space = around(shape, 1).after;
  const double alpha = spec.real("alpha", 0.0001F), beta = spec.real("beta", 0.75F), bias = spec.real("bias", 1);
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {spec.type(0)}, [=](const Run& run) {
      for (Index b = 0; b < batch; ++b)
        for (Index c = 0; c < channels; ++c) {
          const Index first = std::max<Index>(0, c - (size - 1) / 2);
          const Index last = std::min(channels - 1, c + size / 2);
          for (Index s = 0; s < space; ++s) {
            double sum = 0;
            for (Index i = first; i <= last; ++i) {
              const auto x = static_cast<double>(run.in<T>(0)[(b * channels + i) * space + s]);
              sum += x * x;
            }
            const Index at = (b * channels + c) * space + s;
            run.out<T>(0)[at] = static_cast<T>(static_cast<double>(run.in<T>(0)[at]) /
                                               std::pow(bias + alpha / static_cast<double>(size) * sum, beta));
          }
        }
    });
  });
}

std::unique_ptr<NodeKernel> make_lp_norm(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 1);
  const Index p = spec.integer("p", 2);
  if (p != 1 && p != 2) refuse(fmt::format("p {}", p), "1 or 2");
  const AroundAxis dims = around(spec.shape(0), spec.axis(spec.integer("axis", -1), spec.rank(0)));
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {spec.type(0)}, [=](const Run& run) {
      for (Index b = 0; b < dims.before; ++b)
        for (Index a = 0; a < dims.after; ++a) {
          const auto at = [&](Index i) { return (b * dims.size + i) * dims.after + a; };
          double sum = 0;
          for (Index i = 0; i < dims.size; ++i) {
            const auto x = static_cast<double>(run.in<T>(0)[at(i)]);
            sum += p == 1 ? std::abs(x) : x * x;
          }
          const double norm = p == 1 ? sum : std::sqrt(sum);
          for (Index i = 0; i < dims.size; ++i)
            run.out<T>(0)[at(i)] = norm == 0 ? T(0) : static_cast<T>(static_cast<double>(run.in<T>(0)[at(i)]) / norm);
        }
    });
  });
}

std::unique_ptr<NodeKernel> make_global_lp_pool(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 1);
  spec.require_rank(0, 3, kMostDimensions);
  const Index p = spec.integer("p", 2);
  if (p < 1) refuse(fmt::format("p {}", p), "1 or more");
  const Index planes = spec.shape(0)[0] * spec.shape(0)[1], space = around(spec.shape(0), 1).after;
  Shape out(spec.rank(0), 1);
  std::copy_n(spec.shape(0).begin(), 2, out.begin());
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {{spec.element(0), out}}, [=](const Run& run) {
      for (Index i = 0; i < planes; ++i) {
        double sum = 0;
        for (Index s = 0; s < space; ++s)
          sum += std::pow(std::abs(static_cast<double>(run.in<T>(0)[i * space + s])), static_cast<double>(p));
        run.out<T>(0)[i] = static_cast<T>(std::pow(sum, 1.0 / static_cast<double>(p)));
      }
    });
  });
}

std::unique_ptr<NodeKernel> make_quick_gelu(const Spec& spec, PackedWeights*) {
  KernelNode node = spec.node;
  if (!node.attributes.has("alpha")) node.attributes.set("alpha", 1.702F);
  return make_unary(Spec(node), Unary::silu);
}

}  // namespace doppler::model
