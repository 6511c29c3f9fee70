#include <algorithm>
#include <array>
#include <cmath>

#include "doppler/kernels/host/gemm.h"
#include "doppler/kernels/onnx/loops.h"
#include "doppler/kernels/onnx/matmul.h"

namespace doppler::model {
namespace {

// Where the elements of a tensor of [batch, heads, rows, depth] are, in memory of any order.
struct Steps4 {
  Index batch = 0, head = 0, row = 0, column = 0;
};

struct AttentionShape {
  Index batch = 1, heads = 1, rows = 1, keys = 1, depth = 1, value_depth = 1;
  Steps4 q = {}, k = {}, v = {}, mask = {}, out = {};
  float scale = 1;
  bool masked = false, causal = false;
};

// The largest of a row comes off before the exponential function, which would overflow.
template <typename T>
void softmax_row(T* scores, Index keys, T scale, const T* mask, Index mask_step) {
  const auto& loops = float_loops<T>();
  const auto n = static_cast<std::size_t>(keys);
  if (mask != nullptr) {
    loops.scale_and_shift(scores, scores, n, scale, T(0));
    if (mask_step == 1)
      loops.binary[static_cast<std::size_t>(Binary::add)](scores, mask, scores, n, Scalar::none);
    else
      for (Index i = 0; i < keys; ++i) scores[i] += mask[i * mask_step];
    scale = 1;
  }
  const T largest = loops.max(scores, n);
  const T sum = loops.exp_and_sum(scores, scores, n, scale, scale * largest);
  loops.scale_and_shift(scores, scores, n, T(1) / sum, T(0));
}

// Goes head by head, so that the scores stay in the cache. `scores` holds rows · keys elements.
template <typename T>
void run_attention(const AttentionShape& a, const T* q, const T* k, const T* v, const T* mask, T* out, T* scores) {
  for (Index b = 0; b < a.batch; ++b)
    for (Index h = 0; h < a.heads; ++h) {
      const auto at = [&](const Steps4& steps) { return b * steps.batch + h * steps.head; };
      gemm({a.rows, a.keys, a.depth, {a.q.row, a.q.column}, {a.k.column, a.k.row}, a.keys}, q + at(a.q), k + at(a.k),
           scores);
      for (Index r = 0; r < a.rows; ++r) {
        const T* row_mask = mask != nullptr ? mask + at(a.mask) + r * a.mask.row : nullptr;
        // A causal row sees the keys up to its own; the last row sees all of them.
        const Index seen = a.causal ? std::clamp<Index>(a.keys - a.rows + r + 1, 1, a.keys) : a.keys;
        T* row = scores + r * a.keys;
        softmax_row(row, seen, static_cast<T>(a.scale), row_mask, a.mask.column);
        std::fill(row + seen, row + a.keys, T(0));
      }
      gemm({a.rows, a.value_depth, a.keys, {a.keys, 1}, {a.v.row, a.v.column}, a.out.row}, scores, v + at(a.v),
           out + at(a.out));
    }
}

// A tensor of 4 dimensions as its Transpose shows it.
struct Transposed {
  std::array<Index, 4> sizes;
  Steps4 steps;
};
Transposed transposed(const Spec& spec, std::size_t input, std::string_view attribute) {
  spec.require_rank(input, 4, 4);
  const std::vector<Index> order = spec.attributes().integers(attribute).value_or(std::vector<Index>{0, 1, 2, 3});
  if (spec.axes(order, 4).size() != 4) refuse(fmt::format("{} {}", attribute, program::to_string(order)), "4 axes");
  const std::vector<Index> steps = row_major_steps(spec.shape(input));
  const auto at = [&](std::size_t i) { return static_cast<std::size_t>(spec.axis(order[i], 4)); };
  const Shape& shape = spec.shape(input);
  return {{shape[at(0)], shape[at(1)], shape[at(2)], shape[at(3)]},
          {steps[at(0)], steps[at(1)], steps[at(2)], steps[at(3)]}};
}

void require_matrix(const Steps4& steps, Index rows, Index columns, const char* what) {
  if (!is_blas_matrix(rows, columns, {steps.row, steps.column}))
    refuse(fmt::format("a permutation of {} with neither rows nor columns together", what), "one of them");
}

Steps4 mask_steps(const Spec& spec, std::size_t input, const AttentionShape& a) {
  spec.require_rank(input, 0, 4);
  Shape aligned(4 - spec.rank(input), 1);
  aligned.insert(aligned.end(), spec.shape(input).begin(), spec.shape(input).end());
  const Shape whole = {a.batch, a.heads, a.rows, a.keys};
  if (broadcast_shapes({aligned, whole}) != whole)
    refuse(fmt::format("a mask of {}", program::to_string(spec.shape(input))), program::to_string(whole));
  std::vector<Index> steps = row_major_steps(aligned);
  for (std::size_t i = 0; i < 4; ++i)
    if (aligned[i] == 1) steps[i] = 0;
  return {steps[0], steps[1], steps[2], steps[3]};
}

}  // namespace

std::unique_ptr<NodeKernel> make_attention(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(3, 4);
  const Transposed q = transposed(spec, 0, "perm_q"), k = transposed(spec, 1, "perm_k"),
                   v = transposed(spec, 2, "perm_v");
  AttentionShape a{q.sizes[0], q.sizes[1], q.sizes[2], k.sizes[2], q.sizes[3], v.sizes[3], q.steps, k.steps, v.steps};
  a.scale = spec.real("scale", 1);
  if (k.sizes[0] != a.batch || v.sizes[0] != a.batch || k.sizes[1] != a.heads || v.sizes[1] != a.heads ||
      k.sizes[3] != a.depth || v.sizes[2] != a.keys || a.keys < 1)
    refuse(fmt::format("Q, K and V of {}, {} and {}", program::to_string(spec.shape(0)),
                       program::to_string(spec.shape(1)), program::to_string(spec.shape(2))),
           "sizes that fit");
  require_matrix(a.q, a.rows, a.depth, "Q");
  require_matrix({0, 0, a.k.column, a.k.row}, a.depth, a.keys, "K");
  require_matrix(a.v, a.keys, a.value_depth, "V");
  for (std::size_t i = 1; i < spec.inputs(); ++i)
    if (spec.has(i)) spec.require_element(i, {spec.element(0)});
  if (spec.has(3)) {
    a.masked = true;
    a.mask = mask_steps(spec, 3, a);
  }
  // The output is [batch, heads, rows, depth] transposed by perm_out: output dimension i is dimension order[i].
  const std::vector<Index> order = spec.attributes().integers("perm_out").value_or(std::vector<Index>{0, 1, 2, 3});
  if (spec.axes(order, 4).size() != 4 || spec.axis(order[3], 4) != 3)
    refuse(fmt::format("perm_out {}", program::to_string(order)), "4 axes, the last of them 3");
  const Shape logical = {a.batch, a.heads, a.rows, a.value_depth};
  Shape out;
  for (const Index axis : order) out.push_back(logical[static_cast<std::size_t>(spec.axis(axis, 4))]);
  const std::vector<Index> steps = row_major_steps(out);
  std::array<Index*, 4> places = {&a.out.batch, &a.out.head, &a.out.row, &a.out.column};
  for (std::size_t i = 0; i < 4; ++i) *places[static_cast<std::size_t>(spec.axis(order[i], 4))] = steps[i];
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {{spec.element(0), out}},
                                [a](const Run& run) {
                                  run_attention(a, run.in<T>(0), run.in<T>(1), run.in<T>(2),
                                                a.masked ? run.in<T>(3) : nullptr, run.out<T>(0),
                                                reinterpret_cast<T*>(run.scratch));
                                },
                                {.scratch_bytes = static_cast<std::size_t>(a.rows * a.keys) * sizeof(T)});
  });
}

// Of ONNX Runtime: one product makes Q, K and V. mask_index is [batch, keys] of 0 and 1, or [batch] of lengths.
std::unique_ptr<NodeKernel> make_packed_attention(const Spec& spec, PackedWeights* packed) {
  spec.require_row_major();
  spec.require_inputs(2, 8);
  spec.require_rank(0, 3, 3);
  spec.require_rank(1, 2, 2);
  spec.require_element(0, {Element::f32});
  for (std::size_t i = 4; i < spec.inputs(); ++i)
    if (spec.has(i)) refuse(fmt::format("input {} in use", i), "input, weights, bias and mask_index alone");
  if (spec.used(1)) refuse("output 1 in use", "the first alone");
  const Index batch = spec.shape(0)[0], rows = spec.shape(0)[1], all = spec.shape(1)[1];
  const Index heads = spec.integer("num_heads", 0);
  if (heads < 1 || heads > all || all % (3 * heads) != 0)
    refuse(fmt::format("{} heads of {} columns", heads, all), "a divisor");
  if (spec.attributes().has("qkv_hidden_sizes")) refuse("qkv_hidden_sizes", "Q, K and V of one size");
  const Index hidden = all / 3, depth = hidden / heads;
  KernelNode inner{.name = spec.node.name, .op_type = "MatMul", .domain = "doppler"};
  inner.inputs.assign(
      spec.node.inputs.begin(),
      spec.node.inputs.begin() + std::min<std::ptrdiff_t>(3, static_cast<std::ptrdiff_t>(spec.inputs())));
  std::shared_ptr<NodeKernel> product = make_fused_matmul(Spec(inner), packed);
  const Steps4 part{rows * all, depth, all, 1};
  AttentionShape a{batch, heads, rows, rows, depth, depth, part, part, part};
  a.out = {rows * hidden, depth, hidden, 1};
  a.scale = spec.real("scale", 0);
  if (a.scale == 0) a.scale = 1 / std::sqrt(static_cast<float>(depth));
  a.causal = spec.integer("unidirectional", 0) != 0;
  const bool has_mask = spec.has(3), by_length = has_mask && spec.rank(3) == 1;
  if (has_mask) {
    spec.require_element(3, {Element::i32});
    if (spec.shape(3) != (by_length ? Shape{batch} : Shape{batch, rows}))
      refuse(fmt::format("mask_index of {}", program::to_string(spec.shape(3))), fmt::format("[{}, {}]", batch, rows));
    a.masked = true;
    a.mask = {rows, 0, 0, 1};
  }
  const float hidden_value = spec.real("mask_filter_value", -10000);
  const auto padded = [](Index count) { return static_cast<std::size_t>((count + 15) / 16 * 16); };
  const std::size_t scores_at = padded(batch * rows * all), mask_at = scores_at + padded(rows * rows),
                    product_at = mask_at + padded(batch * rows);
  const bool packs = !product->reads(1);
  return make_function_kernel(spec, {{Element::f32, {batch, rows, hidden}}},
                              [=](const Run& run) {
                                auto* memory = reinterpret_cast<float*>(run.scratch);
                                float* mask = memory + mask_at;
                                const std::array<std::byte*, 1> to = {run.scratch};
                                product->run(run.inputs.first(std::min<std::size_t>(3, run.inputs.size())), to,
                                             reinterpret_cast<std::byte*>(memory + product_at));
                                if (has_mask)
                                  for (Index b = 0; b < batch; ++b)
                                    for (Index t = 0; t < rows; ++t) {
                                      const auto* given = run.in<std::int32_t>(3);
                                      const bool seen = by_length ? t < given[b] : given[b * rows + t] != 0;
                                      mask[b * rows + t] = seen ? 0.0F : hidden_value;
                                    }
                                run_attention(a, memory, memory + hidden, memory + 2 * hidden,
                                              has_mask ? mask : nullptr, run.out<float>(0), memory + scores_at);
                              },
                              {.scratch_bytes = product_at * sizeof(float) + product->scratch_bytes(),
                               .not_read = packs ? 1U << 1 : 0U,
                               .implementation = product->implementation()});
}

}  // namespace doppler::model
