#include "doppler/kernels/onnx/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "doppler/kernels/onnx/broadcast.h"
#include "doppler/kernels/onnx/loops.h"

namespace doppler::model {
namespace {

enum class Fold : std::uint8_t { add, multiply, larger, smaller };
enum class Map : std::uint8_t { same, absolute, square };

template <typename T>
T folded(T a, T b, Fold fold) {
  switch (fold) {
    case Fold::add:
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
      else
        return a + b;
    case Fold::multiply:
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      else
        return a * b;
    case Fold::larger:
      return a > b || a != a ? a : b;
    case Fold::smaller:
      return a < b || a != a ? a : b;
  }
  return a;
}

template <typename T>
T mapped(T x, Map map) {
  if (map == Map::absolute) return x < T{0} ? folded(T{-1}, x, Fold::multiply) : x;
  return map == Map::square ? folded(x, x, Fold::multiply) : x;
}

template <typename T>
T identity_of(Fold fold) {
  constexpr bool kFloating = std::is_floating_point_v<T>;
  switch (fold) {
    case Fold::add:
      return T{0};
    case Fold::multiply:
      return T{1};
    case Fold::larger:
      return kFloating ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
    case Fold::smaller:
      return kFloating ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  }
  return T{0};
}

template <typename T>
T fold_row(const T* x, std::size_t n, Fold fold, Map map) {
  if constexpr (std::is_floating_point_v<T>) {
    const auto& loops = float_loops<T>();
    if (fold == Fold::add && map == Map::same) return loops.sum(x, n);
    if (fold == Fold::add && map == Map::square) return loops.sum_of_squares(x, n);
  }
  T total = identity_of<T>(fold);
  for (std::size_t i = 0; i < n; ++i) total = folded(total, mapped(x[i], map), fold);
  return total;
}

// Folds the input into the output. `walk` goes along the input; its one operand is the output.
template <typename T>
void fold_into(const BroadcastWalk<1>& walk, const T* x, T* out, Fold fold, Map map) {
  const auto n = static_cast<std::size_t>(walk.row());
  const bool along_row = walk.steps[0].back() == 0;
  walk.for_each_row([&](const auto& at, Index first) {
    T* to = out + at[0];
    const T* row = x + first;
    if (along_row) {
      *to = folded(*to, fold_row(row, n, fold, map), fold);
      return;
    }
    if constexpr (std::is_floating_point_v<T>)
      if (fold == Fold::add && map == Map::same) return float_loops<T>().add_scaled(to, row, n, T(1), 1);
    for (std::size_t i = 0; i < n; ++i) to[i] = folded(to[i], mapped(row[i], map), fold);
  });
}

// The largest comes off before the exponential function, which would overflow.
template <typename T>
void log_sum_exp(const BroadcastWalk<1>& walk, const T* x, T* out, Index outputs, T* largest) {
  std::fill_n(largest, outputs, identity_of<T>(Fold::larger));
  fold_into(walk, x, largest, Fold::larger, Map::same);
  for (Index i = 0; i < outputs; ++i)
    if (std::isinf(largest[i])) largest[i] = 0;
  const Index n = walk.row(), step = walk.steps[0].back();
  walk.for_each_row([&](const auto& at, Index first) {
    for (Index i = 0; i < n; ++i) {
      const Index to = at[0] + i * step;
      out[to] += std::exp(x[first + i] - largest[to]);
    }
  });
  for (Index i = 0; i < outputs; ++i) out[i] = std::log(out[i]) + largest[i];
}

struct Plan {
  Reduction reduction;
  BroadcastWalk<1> walk;
  Index outputs = 0, each = 0;  // elements, and how many are folded into one
};

template <typename T>
void reduce(const Plan& plan, const T* x, T* out, std::byte* scratch) {
  Fold fold = Fold::add;
  Map map = Map::same;
  switch (plan.reduction) {
    case Reduction::max:
      fold = Fold::larger;
      break;
    case Reduction::min:
      fold = Fold::smaller;
      break;
    case Reduction::product:
      fold = Fold::multiply;
      break;
    case Reduction::l1:
      map = Map::absolute;
      break;
    case Reduction::l2:
    case Reduction::sum_square:
      map = Map::square;
      break;
    default:
      break;
  }
  std::fill_n(out, plan.outputs, identity_of<T>(fold));
  if (plan.reduction == Reduction::log_sum_exp) {
    if constexpr (std::is_floating_point_v<T>)
      log_sum_exp(plan.walk, x, out, plan.outputs, reinterpret_cast<T*>(scratch));
    return;
  }
  fold_into(plan.walk, x, out, fold, map);
  for (Index i = 0; i < plan.outputs; ++i) {
    if (plan.reduction == Reduction::mean)
      out[i] =
          std::is_floating_point_v<T> || plan.each != 0 ? static_cast<T>(out[i] / static_cast<T>(plan.each)) : out[i];
    if (plan.reduction == Reduction::l2) out[i] = static_cast<T>(std::sqrt(static_cast<double>(out[i])));
    if (plan.reduction == Reduction::log_sum) out[i] = static_cast<T>(std::log(static_cast<double>(out[i])));
  }
}

std::unique_ptr<NodeKernel> make_plan_kernel(const Spec& spec, Plan plan, TensorType out) {
  return with_wide(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    if (plan.reduction == Reduction::log_sum_exp && !std::is_floating_point_v<T>) refuse("integers", "floats");
    const std::size_t scratch =
        plan.reduction == Reduction::log_sum_exp ? static_cast<std::size_t>(plan.outputs) * sizeof(T) : 0;
    return make_function_kernel(spec, {std::move(out)},
                                [plan](const Run& run) { reduce(plan, run.in<T>(0), run.out<T>(0), run.scratch); },
                                {.scratch_bytes = scratch, .not_read = ~1U});
  });
}

}  // namespace

std::unique_ptr<NodeKernel> make_reduction(const Spec& spec, Reduction reduction) {
  spec.require_row_major();
  spec.require_inputs(1, 2);
  const Shape& in = spec.shape(0);
  std::vector<Index> axes = spec.attribute_or_input("axes", 1).value_or(std::vector<Index>());
  if (axes.empty() && spec.integer("noop_with_empty_axes", 0) == 0) {
    axes.resize(in.size());
    std::iota(axes.begin(), axes.end(), Index{0});
  }
  axes = spec.axes(axes, in.size());
  Shape kept = in, out;
  Index each = 1;
  const bool keep = spec.integer("keepdims", 1) != 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool reduced = std::binary_search(axes.begin(), axes.end(), static_cast<Index>(i));
    if (reduced) {
      each *= in[i];
      kept[i] = 1;
    }
    if (!reduced || keep) out.push_back(kept[i]);
  }
  Plan plan{reduction, BroadcastWalk<1>(in, {kept}), program::product(kept), each};
  return make_plan_kernel(spec, std::move(plan), {spec.element(0), out});
}

std::unique_ptr<NodeKernel> make_global_pool(const Spec& spec, PackedWeights*) {
  spec.require_inputs(1, 1);
  spec.require_rank(0, 3, kMostDimensions);
  const Shape& shape = spec.shape(0);
  const Layout layout = spec.type(0).layout;
  if (layout != Layout::row_major && layout != Layout::channels_last)
    refuse(fmt::format("layout {}", to_string(layout)), "row-major or channels-last");
  const Index space = around(shape, 1).after;
  if (space == 0) refuse(program::to_string(shape), "something to pool");
  const bool last = layout == Layout::channels_last;
  const Shape in = last ? Shape{shape[0], space, shape[1]} : Shape{shape[0], shape[1], space};
  const Shape kept = last ? Shape{shape[0], 1, shape[1]} : Shape{shape[0], shape[1], 1};
  Shape out(shape.size(), 1);
  out[0] = shape[0];
  out[1] = shape[1];
  const Reduction reduction = spec.node.op_type == "GlobalMaxPool" ? Reduction::max : Reduction::mean;
  Plan plan{reduction, BroadcastWalk<1>(in, {kept}), shape[0] * shape[1], space};
  return make_plan_kernel(spec, std::move(plan), {spec.element(0), out, spec.output_layout(0)});
}

std::vector<LayoutChoice> global_pool_layouts(const Spec& spec) {
  if (spec.rank(0) < 3 || spec.rank(0) > 5) return {};
  // One pixel per channel: the memory of the output is the same in both.
  return {{{Layout::channels_last}, {Layout::channels_last}}, {{Layout::channels_last}, {Layout::row_major}}};
}

std::unique_ptr<NodeKernel> make_cumulative_sum(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(2, 2);
  const Index axis = spec.axis(spec.known_integer(1), spec.rank(0));
  const AroundAxis dims = around(spec.shape(0), axis);
  const bool exclusive = spec.integer("exclusive", 0) != 0, reverse = spec.integer("reverse", 0) != 0;
  return with_wide(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {{spec.element(0), spec.shape(0)}},
                                [=](const Run& run) {
                                  for (Index b = 0; b < dims.before; ++b)
                                    for (Index a = 0; a < dims.after; ++a) {
                                      T total{};
                                      for (Index i = 0; i < dims.size; ++i) {
                                        const Index at =
                                            (b * dims.size + (reverse ? dims.size - 1 - i : i)) * dims.after + a;
                                        const T value = run.in<T>(0)[at], next = folded(total, value, Fold::add);
                                        run.out<T>(0)[at] = exclusive ? total : next;
                                        total = next;
                                      }
                                    }
                                },
                                {.not_read = 1U << 1});
  });
}

}  // namespace doppler::model
