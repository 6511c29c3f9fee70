#include "doppler/kernels/onnx/matmul.h"

#include <algorithm>
#include <array>

#include "doppler/kernels/host/gemm.h"
#include "doppler/kernels/onnx/broadcast.h"
#include "doppler/kernels/onnx/primitive.h"

namespace doppler::model {
namespace {

// An operand as a stack of matrices: sizes and steps of the batch dimensions, of rows and of columns.
struct Stack {
  Shape sizes;  // batch, rows, columns
  std::vector<Index> steps;
};

Stack stack_of(const Shape& shape, bool transposed, bool batch_transposed) {
  Stack stack{shape, row_major_steps(shape)};
  const std::size_t rank = shape.size();
  if (batch_transposed && rank > 2) {
    // [rows, batch…, columns] is read as [batch…, rows, columns].
    std::rotate(stack.sizes.begin(), stack.sizes.begin() + 1, stack.sizes.end() - 1);
    std::rotate(stack.steps.begin(), stack.steps.begin() + 1, stack.steps.end() - 1);
  }
  if (transposed && rank > 1) {
    std::swap(stack.sizes[rank - 1], stack.sizes[rank - 2]);
    std::swap(stack.steps[rank - 1], stack.steps[rank - 2]);
  }
  return stack;
}

struct ProductForm {
  bool transposed_a = false, transposed_b = false, batch_a = false, batch_b = false;
  float alpha = 1;
};

struct ShapedProduct {
  Product product;
  Shape out;
};

ShapedProduct shape_product(const Spec& spec, const ProductForm& form) {
  spec.require_rank(0, 1, kMostDimensions);
  spec.require_rank(1, 1, kMostDimensions);
  Shape a_shape = spec.shape(0), b_shape = spec.shape(1);
  const bool row = a_shape.size() == 1, column = b_shape.size() == 1;
  if (row) a_shape.insert(a_shape.begin(), 1);
  if (column) b_shape.push_back(1);
  const Stack a = stack_of(a_shape, form.transposed_a && !row, form.batch_a);
  const Stack b = stack_of(b_shape, form.transposed_b && !column, form.batch_b);
  const std::size_t ra = a.sizes.size(), rb = b.sizes.size();
  if (a.sizes[ra - 1] != b.sizes[rb - 2])
    refuse(fmt::format("a product of {} and {}", program::to_string(spec.shape(0)), program::to_string(spec.shape(1))),
           "sizes that fit");
  ShapedProduct result;
  Product& p = result.product;
  p.m = a.sizes[ra - 2];
  p.k = a.sizes[ra - 1];
  p.n = b.sizes[rb - 1];
  const Shape a_batch(a.sizes.begin(), a.sizes.end() - 2), b_batch(b.sizes.begin(), b.sizes.end() - 2);
  p.batch = broadcast_shapes({a_batch, b_batch});
  const auto steps = [&](const Stack& stack, const Shape& batch) {
    std::vector<Index> result_steps(p.batch.size() - batch.size(), 0);
    for (std::size_t i = 0; i < batch.size(); ++i) result_steps.push_back(batch[i] == 1 ? 0 : stack.steps[i]);
    return result_steps;
  };
  p.a = {steps(a, a_batch), a.steps[ra - 2], a.steps[ra - 1]};
  p.b = {steps(b, b_batch), b.steps[rb - 2], b.steps[rb - 1]};
  result.out = p.batch;
  if (!row) result.out.push_back(p.m);
  if (!column) result.out.push_back(p.n);
  result.out = checked_shape(std::move(result.out));
  // Where all batches meet one matrix and follow each other, their rows are those of one product.
  while (!p.batch.empty() && p.b.batch.back() == 0 && (p.a.batch.back() == p.a.row * p.m || p.m == 1)) {
    if (p.m == 1) p.a.row = p.a.batch.back();
    p.m *= p.batch.back();
    p.batch.pop_back();
    p.a.batch.pop_back();
    p.b.batch.pop_back();
  }
  return result;
}

// What happens to the product in the end, where the primitive does not do it.
struct Tail {
  bool bias = false, residual = false;
  Activation activation;
  float alpha = 1;

  bool any() const { return bias || residual || activation.any() || alpha != 1; }
};

template <typename T>
void apply_tail(const Tail& tail, T* out, Index rows, Index columns, const T* bias, const T* residual) {
  const auto& loops = float_loops<T>();
  const auto add = loops.binary[static_cast<std::size_t>(Binary::add)];
  const auto n = static_cast<std::size_t>(columns);
  for (Index r = 0; r < rows; ++r) {
    T* row = out + r * columns;
    if (tail.alpha != 1) loops.scale_and_shift(row, row, n, static_cast<T>(tail.alpha), T(0));
    if (tail.bias) add(row, bias, row, n, Scalar::none);
    if (tail.residual) add(row, residual + r * columns, row, n, Scalar::none);
    tail.activation.apply(row, n);
  }
}

// Inputs of a fused product.
struct Slots {
  std::size_t bias = 32, residual = 32;  // 32: none
};

Desc operand_desc(const Product& p, const Product::Operand& operand, Index rows, Index columns) {
  Shape shape;
  std::vector<Index> steps;
  for (std::size_t i = 0; i < p.batch.size(); ++i) {
    const bool stays = operand.batch[i] == 0;
    shape.push_back(stays ? 1 : p.batch[i]);
    steps.push_back(stays ? rows * columns : operand.batch[i]);
  }
  shape.insert(shape.end(), {rows, columns});
  // The step of a dimension of size 1 means nothing, but oneDNN looks at it.
  Index row = operand.row, column = operand.column;
  if (columns == 1 && row == 1) column = 1;
  if (rows == 1) row = std::max(row, columns * column);
  steps.insert(steps.end(), {row, column});
  return strided_desc(shape, steps);
}

// Returns nothing if oneDNN has no implementation but its reference.
std::unique_ptr<NodeKernel> make_primitive(const Spec& spec, const ShapedProduct& shaped, const Tail& tail,
                                           const Slots& slots, PackedWeights* packed) try {
  const Product& p = shaped.product;
  // oneDNN 2.6 keeps one set of parameters per function: two of its linear ones in a row would have the same.
  if (tail.alpha != 1 && tail.activation.function == Unary::hard_sigmoid) return nullptr;
  if (p.m == 0 || p.n == 0 || p.k == 0 || p.batches() == 0 || p.batch.size() > 4) return nullptr;
  Shape out = p.batch;
  out.insert(out.end(), {p.m, p.n});
  const Desc a = operand_desc(p, p.a, p.m, p.k), b = operand_desc(p, p.b, p.k, p.n);
  const Desc c = strided_desc(out, row_major_steps(out));
  const Tensor* constant = spec.node.inputs[1].constant;
  const bool packs = constant != nullptr && p.batch.empty();
  Shape bias_shape(out.size(), 1);
  bias_shape.back() = p.n;
  const Desc bias = strided_desc(bias_shape, row_major_steps(bias_shape));
  dnnl::primitive_attr attr = user_scratch();
  dnnl::post_ops ops;
  std::vector<PrimitiveCall::Argument> arguments;
  // The factor comes before the bias, which the primitive would add before it.
  const bool late_bias = tail.bias && tail.alpha != 1;
  if (tail.alpha != 1) ops.append_eltwise(1, dnnl::algorithm::eltwise_linear, tail.alpha, 0);
  std::vector<std::size_t> late;  // inputs of post-operations
  const auto append_binary = [&](const Desc& desc, std::size_t input) {
    ops.append_binary(dnnl::algorithm::binary_add, desc);
    arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(ops.len() - 1) | DNNL_ARG_SRC_1, desc});
    late.push_back(input);
  };
  if (late_bias) append_binary(bias, slots.bias);
  if (tail.residual) append_binary(c, slots.residual);
  append_activation(ops, tail.activation);
  attr.set_post_ops(ops);
  const Desc weights = packs ? any_desc({p.k, p.n}) : b;
  const bool own_bias = tail.bias && !late_bias;
  const auto desc = own_bias ? dnnl::matmul::desc(a, weights, bias, c) : dnnl::matmul::desc(a, weights, c);
  dnnl::matmul::primitive_desc chosen(desc, attr, processor_engine(), true);
  if (!choose_implementation(chosen)) return nullptr;
  PackedTensor held;
  if (packs) held = pack(constant->data.get(), b, chosen.weights_desc(), packed);
  arguments.insert(arguments.begin(), {{DNNL_ARG_SRC, a},
                                       {DNNL_ARG_WEIGHTS, chosen.weights_desc()},
                                       {DNNL_ARG_DST, c},
                                       {DNNL_ARG_SCRATCHPAD, chosen.scratchpad_desc()}});
  if (own_bias) arguments.push_back({DNNL_ARG_BIAS, bias});
  auto call = std::make_shared<PrimitiveCall>(dnnl::matmul(chosen), std::move(arguments));
  const std::size_t bias_slot = own_bias ? slots.bias : 32;
  return make_function_kernel(spec, {{Element::f32, shaped.out}},
                              [=](const Run& run) {
                                std::array<const std::byte*, 8> addresses = {
                                    run.inputs[0], held != nullptr ? held.get() : run.inputs[1], run.outputs[0],
                                    run.scratch};
                                std::size_t count = 4;
                                for (const std::size_t input : late) addresses[count++] = run.inputs[input];
                                if (bias_slot < 32) addresses[count++] = run.inputs[bias_slot];
                                call->run(std::span(addresses.data(), count));
                              },
                              {.scratch_bytes = chosen.scratchpad_desc().get_size(),
                               .not_read = held != nullptr ? 1U << 1 : 0U,
                               .implementation = fmt::format("onednn {}", chosen.impl_info_str())});
} catch (const dnnl::error&) {
  return nullptr;  // a combination that it does not have
}

std::unique_ptr<NodeKernel> make_product(const Spec& spec, const ProductForm& form, Tail tail, const Slots& slots,
                                         PackedWeights* packed) {
  spec.require_row_major();
  if (spec.element(0) != spec.element(1))
    refuse(fmt::format("{} and {}", to_string(spec.element(0)), to_string(spec.element(1))), "one type");
  const ShapedProduct shaped = shape_product(spec, form);
  const Product& p = shaped.product;
  tail.alpha = form.alpha;
  tail.bias = spec.has(slots.bias);
  tail.residual = spec.has(slots.residual);
  if (tail.bias && (spec.type(slots.bias).count() != p.n || spec.element(slots.bias) != spec.element(0)))
    refuse(fmt::format("a bias of {}", to_string(spec.type(slots.bias))), fmt::format("{} elements", p.n));
  if (tail.residual && (spec.shape(slots.residual) != shaped.out || spec.element(slots.residual) != spec.element(0)))
    refuse(fmt::format("a residual of {}", to_string(spec.type(slots.residual))), program::to_string(shaped.out));
  if (spec.element(0) == Element::f32)
    if (auto kernel = make_primitive(spec, shaped, tail, slots, packed)) return kernel;
  return with_wide(spec.element(0), [&](auto tag) -> std::unique_ptr<NodeKernel> {
    using T = decltype(tag);
    if (!std::is_floating_point_v<T> && tail.any()) refuse("integers with a factor, bias or activation", "floats");
    return make_function_kernel(spec, {{spec.element(0), shaped.out}}, [=](const Run& run) {
      run_product(p, run.in<T>(0), run.in<T>(1), run.out<T>(0));
      if constexpr (std::is_floating_point_v<T>)
        if (tail.any())
          apply_tail(tail, run.out<T>(0), p.batches() * p.m, p.n, run.in<T>(slots.bias), run.in<T>(slots.residual));
    });
  });
}

}  // namespace

template <typename T>
void run_product(const Product& p, const T* a, const T* b, T* out) {
  const Index matrix = p.m * p.n;
  if (p.k == 0 || matrix == 0) {
    std::fill_n(out, p.batches() * matrix, T{});
    return;
  }
  std::array<Index, kMostDimensions> at{};
  const Index batches = p.batches();
  for (Index batch = 0; batch < batches; ++batch, out += matrix) {
    if constexpr (std::is_floating_point_v<T>) {
      gemm({p.m, p.n, p.k, {p.a.row, p.a.column}, {p.b.row, p.b.column}, p.n}, a, b, out);
    } else {
      for (Index i = 0; i < p.m; ++i)
        for (Index j = 0; j < p.n; ++j) {
          std::uint64_t sum = 0;  // wraps
          for (Index x = 0; x < p.k; ++x)
            sum += static_cast<std::uint64_t>(a[i * p.a.row + x * p.a.column]) *
                   static_cast<std::uint64_t>(b[x * p.b.row + j * p.b.column]);
          out[i * p.n + j] = static_cast<T>(sum);
        }
    }
    for (std::size_t i = p.batch.size(); i-- > 0;) {
      a += p.a.batch[i];
      b += p.b.batch[i];
      if (++at[i] < p.batch[i]) break;
      a -= p.a.batch[i] * p.batch[i];
      b -= p.b.batch[i] * p.batch[i];
      at[i] = 0;
    }
  }
}
template void run_product(const Product&, const float*, const float*, float*);
template void run_product(const Product&, const double*, const double*, double*);
template void run_product(const Product&, const std::int64_t*, const std::int64_t*, std::int64_t*);

std::unique_ptr<NodeKernel> make_matmul(const Spec& spec, PackedWeights* packed) {
  spec.require_inputs(2, 2);
  return make_product(spec, {}, {}, {}, packed);
}

std::unique_ptr<NodeKernel> make_fused_matmul(const Spec& spec, PackedWeights* packed) {
  spec.require_inputs(2, 4);
  const ProductForm form{spec.integer("transA", 0) != 0, spec.integer("transB", 0) != 0,
                         spec.integer("transBatchA", 0) != 0, spec.integer("transBatchB", 0) != 0,
                         spec.real("alpha", 1)};
  return make_product(spec, form, {.activation = activation_of(spec)}, {.bias = 2, .residual = 3}, packed);
}

std::unique_ptr<NodeKernel> make_gemm(const Spec& spec, PackedWeights* packed) {
  spec.require_inputs(2, 3);
  spec.require_rank(0, 2, 2);
  spec.require_rank(1, 2, 2);
  const ProductForm form{spec.integer("transA", 0) != 0, spec.integer("transB", 0) != 0, false, false,
                         spec.real("alpha", 1)};
  const float beta = spec.real("beta", 1);
  const Activation activation = activation_of(spec);
  const Index m = spec.shape(0)[form.transposed_a ? 1 : 0], n = spec.shape(1)[form.transposed_b ? 0 : 1];
  const bool has_c = spec.has(2) && beta != 0;
  const bool vector = has_c && spec.type(2).count() == n && (spec.rank(2) == 1 || spec.shape(2)[0] == 1);
  if (!has_c || (beta == 1 && vector && n > 0) || (beta == 1 && spec.shape(2) == Shape{m, n})) {
    KernelNode fused = spec.node;
    if (!has_c) fused.inputs.resize(2);
    const bool residual = has_c && !vector;
    return make_product(Spec(fused), form, {.activation = activation},
                        {.bias = residual ? 32U : 2U, .residual = residual ? 2U : 32U}, packed);
  }
  // Any other C, and any other factor of it, is broadcast into the output after the product.
  if (spec.element(2) != spec.element(0)) refuse("C of another type", "that of A");
  KernelNode inner = spec.node;
  inner.inputs.resize(2);
  std::shared_ptr<NodeKernel> product = make_product(Spec(inner), form, {}, {}, packed);
  const Shape out = product->outputs()[0].shape;
  if (broadcast_shapes({out, spec.shape(2)}) != out)
    refuse(fmt::format("C of shape {}", program::to_string(spec.shape(2))), program::to_string(out));
  const BroadcastWalk<1> walk(out, {spec.shape(2)});
  const bool packs = !product->reads(1);
  return with_wide(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(
        spec, {{spec.element(0), out}},
        [=](const Run& run) {
          product->run(run.inputs.first(2), run.outputs, run.scratch);
          using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;  // integers wrap
          T* values = run.out<T>(0);
          const Index length = walk.row(), step = walk.steps[0].back();
          walk.for_each_row([&](const auto& at, Index first) {
            const T* c = run.in<T>(2) + at[0];
            for (Index i = 0; i < length; ++i)
              values[first + i] =
                  static_cast<T>(static_cast<Sum>(values[first + i]) +
                                 static_cast<Sum>(static_cast<T>(beta)) * static_cast<Sum>(c[i * step]));
          });
          if constexpr (std::is_floating_point_v<T>) activation.apply(values, static_cast<std::size_t>(m * n));
        },
        {.scratch_bytes = product->scratch_bytes(),
         .not_read = packs ? 1U << 1 : 0U,
         .implementation = product->implementation()});
  });
}

}  // namespace doppler::model
