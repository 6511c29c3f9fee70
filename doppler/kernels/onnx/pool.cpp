#include <cmath>
#include <limits>

#include "doppler/kernels/onnx/loops.h"
#include "doppler/kernels/onnx/movement.h"
#include "doppler/kernels/onnx/primitive.h"
#include "doppler/kernels/onnx/window_loops.h"

namespace doppler::model {
namespace {

enum class PoolKind : std::uint8_t { max, average, lp };

struct Pool {
  PoolKind kind = PoolKind::max;
  Window window;
  Index planes = 0;  // N · C
  bool with_pads = false;
  Index p = 2;
  bool by_columns = false;  // how indices count
};

Pool read_pool(const Spec& spec) {
  spec.require_inputs(1, 1);
  Pool pool;
  const std::string& op = spec.node.op_type;
  pool.kind = op == "MaxPool" ? PoolKind::max : op == "AveragePool" ? PoolKind::average : PoolKind::lp;
  pool.window = window_of(spec, spec.shape(0), std::nullopt, spec.integer("ceil_mode", 0) != 0);
  pool.planes = spec.shape(0)[0] * spec.shape(0)[1];
  pool.with_pads = spec.integer("count_include_pad", 0) != 0;
  pool.p = spec.integer("p", 2);
  pool.by_columns = spec.integer("storage_order", 0) != 0;
  if (pool.p < 1) refuse(fmt::format("p {}", pool.p), "1 or more");
  return pool;
}

// Returns by how much each sum is divided: by the elements that its window meets, or those that it would meet with pads
// (but not beyond them, where the output's size was rounded up).
std::vector<double> divisors(const Pool& pool) {
  const Window& w = pool.window;
  std::vector<double> counts = {1};
  for (std::size_t d = 0; d < w.rank(); ++d) {
    std::vector<double> next;
    for (const double before : counts)
      for (Index o = 0; o < w.out[d]; ++o) {
        Index met = 0;
        const Index least = pool.with_pads ? -w.before[d] : 0, most = w.in[d] + (pool.with_pads ? w.after[d] : 0);
        for (Index k = 0; k < w.kernel[d]; ++k) {
          const Index at = o * w.strides[d] + k * w.dilations[d] - w.before[d];
          met += at >= least && at < most ? 1 : 0;
        }
        next.push_back(before * static_cast<double>(std::max<Index>(met, 1)));
      }
    counts = std::move(next);
  }
  return counts;
}

template <typename T>
void pool_plane(const Pool& pool, const T* x, T* out, const std::vector<double>& counts) {
  const Window& w = pool.window;
  const Index size = program::product(w.out);
  constexpr bool kFloating = std::is_floating_point_v<T>;
  const T least = kFloating ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  std::fill_n(out, size, pool.kind == PoolKind::max ? least : T{});
  const Index step = w.strides.back();
  for_each_tap(w, [&](const Tap& tap, Index) {
    for_each_window_row(w, tap, [&](Index to, Index from, Index count) {
      const auto n = static_cast<std::size_t>(count);
      if (pool.kind == PoolKind::lp) {
        for (Index i = 0; i < count; ++i)
          out[to + i] += static_cast<T>(std::pow(std::abs(static_cast<double>(x[from + i * step])), pool.p));
      } else if constexpr (kFloating) {
        const auto& loops = float_loops<T>();
        if (pool.kind == PoolKind::max)
          loops.max_into(out + to, x + from, n, step);
        else
          loops.add_scaled(out + to, x + from, n, T(1), step);
      } else {
        for (Index i = 0; i < count; ++i) out[to + i] = std::max(out[to + i], x[from + i * step]);
      }
    });
  });
  if (pool.kind == PoolKind::average)
    for (Index i = 0; i < size; ++i)
      out[i] = static_cast<T>(out[i] / static_cast<T>(counts[static_cast<std::size_t>(i)]));
  if (pool.kind == PoolKind::lp)
    for (Index i = 0; i < size; ++i)
      out[i] = static_cast<T>(std::pow(static_cast<double>(out[i]), 1.0 / static_cast<double>(pool.p)));
}

// Where the largest elements are, counted in the whole tensor.
template <typename T>
void pool_indices(const Pool& pool, const T* x, const T* largest, Index plane, Index* indices) {
  const Window& w = pool.window;
  const Index size = program::product(w.out), plane_size = program::product(w.in);
  std::fill_n(indices, size, Index{-1});
  for_each_tap(w, [&](const Tap& tap, Index) {
    for_each_window_row(w, tap, [&](Index to, Index from, Index count) {
      for (Index i = 0; i < count; ++i) {
        const Index at = from + i * w.strides.back();
        if (indices[to + i] >= 0 || !(x[at] == largest[to + i])) continue;
        Index counted = at;
        if (pool.by_columns) {
          Index rest = at, step = 1;
          counted = 0;
          std::array<Index, 4> index{};
          for (std::size_t d = w.rank(); d-- > 0; rest /= w.in[d]) index[d] = rest % w.in[d];
          for (std::size_t d = 0; d < w.rank(); step *= w.in[d++]) counted += index[d] * step;
        }
        indices[to + i] = plane * plane_size + counted;
      }
    });
  });
}

// Returns nothing where oneDNN has no implementation but its reference.
std::unique_ptr<NodeKernel> make_primitive(const Spec& spec, const Pool& pool, const TensorType& type) try {
  using dnnl::algorithm;
  const Window& w = pool.window;
  for (const Index dilation : w.dilations)
    if (dilation != 1) return nullptr;
  Shape after;
  for (std::size_t i = 0; i < w.rank(); ++i) {
    after.push_back((w.out[i] - 1) * w.strides[i] + w.kernel[i] - w.in[i] - w.before[i]);
    if (after[i] > w.after[i] && pool.with_pads) return nullptr;
  }
  const algorithm how = pool.kind == PoolKind::max ? algorithm::pooling_max
                        : pool.with_pads           ? algorithm::pooling_avg_include_padding
                                                   : algorithm::pooling_avg_exclude_padding;
  const Desc in = desc_of(spec.type(0)), out = desc_of(type);
  const dnnl::pooling_forward::desc desc(dnnl::prop_kind::forward_inference, how, in, out, w.strides, w.kernel,
                                         w.before, after);
  dnnl::pooling_forward::primitive_desc chosen(desc, user_scratch(), processor_engine(), true);
  if (!choose_implementation(chosen)) return nullptr;
  auto call = std::make_shared<PrimitiveCall>(
      dnnl::pooling_forward(chosen),
      std::vector<PrimitiveCall::Argument>{
          {DNNL_ARG_SRC, in}, {DNNL_ARG_DST, out}, {DNNL_ARG_SCRATCHPAD, chosen.scratchpad_desc()}});
  return make_function_kernel(spec, {type},
                              [call](const Run& run) {
                                call->run(std::array<const std::byte*, 3>{run.inputs[0], run.outputs[0], run.scratch});
                              },
                              {.scratch_bytes = chosen.scratchpad_desc().get_size(),
                               .implementation = fmt::format("onednn {}", chosen.impl_info_str())});
} catch (const dnnl::error&) {
  return nullptr;
}

}  // namespace

std::unique_ptr<NodeKernel> make_pool(const Spec& spec, PackedWeights*) {
  const Pool pool = read_pool(spec);
  TensorType type{spec.element(0), {spec.shape(0)[0], spec.shape(0)[1]}, spec.output_layout(0)};
  type.shape.insert(type.shape.end(), pool.window.out.begin(), pool.window.out.end());
  type.shape = checked_shape(std::move(type.shape));
  if (spec.type(0).layout != type.layout) refuse("another layout of the output", "that of the input");
  check_layout(type);
  const bool indices = pool.kind == PoolKind::max && spec.used(1);
  if (spec.element(0) == Element::f32 && type.layout != Layout::row_major && !indices && pool.kind != PoolKind::lp &&
      type.count() > 0)
    if (auto kernel = make_primitive(spec, pool, type)) return kernel;
  spec.require_row_major();
  std::vector<TensorType> outputs = {type};
  if (indices) outputs.push_back({Element::i64, type.shape});
  if (pool.kind != PoolKind::max && !is_floating(spec.element(0))) refuse("integers", "floats");
  const std::vector<double> counts = pool.kind == PoolKind::average ? divisors(pool) : std::vector<double>();
  const Index in = program::product(pool.window.in), out = program::product(pool.window.out);
  return with_wide(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, outputs, [=](const Run& run) {
      for (Index plane = 0; plane < pool.planes; ++plane) {
        pool_plane(pool, run.in<T>(0) + plane * in, run.out<T>(0) + plane * out, counts);
        if (indices)
          pool_indices(pool, run.in<T>(0) + plane * in, run.out<T>(0) + plane * out, plane,
                       run.out<Index>(1) + plane * out);
      }
    });
  });
}

std::vector<LayoutChoice> pool_layouts(const Spec& spec) {
  if (spec.element(0) != Element::f32 || spec.used(1) || spec.node.op_type == "LpPool") return {};
  std::vector<LayoutChoice> choices;
  for (const LayoutChoice& choice : identity_layouts(spec)) {
    KernelNode node = spec.node;
    node.inputs[0].type->layout = choice.inputs[0];
    node.output_layouts = choice.outputs;
    const Pool pool = read_pool(spec);
    TensorType type{Element::f32, {spec.shape(0)[0], spec.shape(0)[1]}, choice.outputs[0]};
    type.shape.insert(type.shape.end(), pool.window.out.begin(), pool.window.out.end());
    if (make_primitive(Spec(node), pool, type) != nullptr) choices.push_back(choice);
  }
  return choices;
}

std::unique_ptr<NodeKernel> make_max_unpool(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(2, 3);
  spec.require_element(1, {Element::i64});
  const Shape& x = spec.shape(0);
  if (spec.shape(1) != x || x.size() < 3)
    refuse("data and indices of other shapes", "the same, of 3 dimensions or more");
  const std::size_t rank = x.size() - 2;
  const auto list = [&](std::string_view name, std::size_t size, Index otherwise) {
    const Shape given = spec.attributes().integers(name).value_or(Shape(size, otherwise));
    for (const Index value : given)
      if (given.size() != size || value < 0 || value > Index{1} << 31)
        refuse(fmt::format("{} {}", name, program::to_string(given)), fmt::format("{} sizes", size));
    return given;
  };
  const Shape kernel = list("kernel_shape", rank, 1), strides = list("strides", rank, 1),
              pads = list("pads", 2 * rank, 0);
  Shape natural = {x[0], x[1]};
  for (std::size_t i = 0; i < rank; ++i)
    natural.push_back((x[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[rank + i]);
  const Shape out = checked_shape(spec.has(2) ? spec.known_integers(2) : natural);
  if (out.size() != x.size()) refuse("an output of another rank", "that of the input");
  // Indices count in the natural output; in a larger one each pixel keeps its place.
  checked_shape(natural);
  const Index count = program::product(x), size = program::product(natural), whole = program::product(out);
  const std::vector<Index> from = row_major_steps(natural), to = row_major_steps(out);
  return with_wide(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {{spec.element(0), out}},
                                [=](const Run& run) {
                                  std::fill_n(run.out<T>(0), whole, T{});
                                  for (Index i = 0; i < count; ++i) {
                                    const Index at = checked_index(run.in<Index>(1)[i], size, run.where);
                                    Index place = 0;
                                    for (std::size_t d = 0; d < natural.size(); ++d)
                                      place += checked_index(at / from[d] % natural[d], out[d], run.where) * to[d];
                                    run.out<T>(0)[place] = run.in<T>(0)[i];
                                  }
                                },
                                {.not_read = 1U << 2});
  });
}

}  // namespace doppler::model
