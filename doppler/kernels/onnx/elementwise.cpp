#include "doppler/kernels/onnx/elementwise.h"

#include <cmath>
#include <limits>

#include "doppler/kernels/onnx/broadcast.h"
#include "doppler/kernels/onnx/integer_loops.h"

namespace doppler::model {
namespace {

constexpr std::uint32_t kFirst = 1, kFirstTwo = 3;

// Applies a loop on two operands to rows of a broadcast.
template <typename T, typename Out, typename Loop>
void apply_rows(const BroadcastWalk<2>& walk, Loop loop, const T* a, const T* b, Out* out) {
  const bool a_stays = walk.steps[0].back() == 0, b_stays = walk.steps[1].back() == 0;
  const auto n = static_cast<std::size_t>(walk.row());
  const Scalar scalar = n == 1 ? Scalar::none : a_stays ? Scalar::left : b_stays ? Scalar::right : Scalar::none;
  walk.for_each_row([&](const auto& at, Index first) { loop(a + at[0], b + at[1], out + first, n, scalar); });
}

template <typename T, typename Function, typename Out = T>
void apply_binary(const BroadcastWalk<2>& walk, Function function, const T* a, const T* b, Out* out) {
  if constexpr (std::is_floating_point_v<T>) {
    const auto& loops = float_loops<T>();
    if constexpr (std::is_same_v<Function, Comparison>)
      apply_rows(walk, loops.comparison[static_cast<std::size_t>(function)], a, b, out);
    else
      apply_rows(walk, loops.binary[static_cast<std::size_t>(function)], a, b, out);
  } else {
    apply_rows(walk, integer_loop<T>(function), a, b, out);
  }
}

// f32, f64, i64 and u64.
template <typename Visit>
decltype(auto) with_number(Element element, Visit&& visit) {
  if (element == Element::u64) return visit(std::uint64_t{});
  return with_wide(element, std::forward<Visit>(visit));
}

std::uint32_t in_place_of(const Physical& shapes) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < shapes.inputs.size() && i < 2; ++i)
    if (program::product(shapes.inputs[i]) == program::product(shapes.output)) bits |= 1U << i;
  return bits;
}

void require_same_elements(const Spec& spec, std::size_t inputs) {
  for (std::size_t i = 1; i < inputs; ++i)
    if (spec.element(i) != spec.element(0))
      refuse(fmt::format("inputs of {} and {}", to_string(spec.element(0)), to_string(spec.element(i))), "one type");
}

// Operator sets before 7 broadcast where told to: the second operand's dimensions begin at `axis` of the first's. The
// slopes of a PRelu were those of channels.
Spec with_old_broadcast(const Spec& spec, KernelNode& adapted) {
  if (spec.node.opset >= 7 || !spec.node.domain.empty() || !spec.has(0) || !spec.has(1)) return spec;
  const bool slopes = spec.node.op_type == "PRelu" && spec.rank(1) == 1 && spec.rank(0) > 1 && spec.shape(1)[0] > 1;
  if (!slopes && (spec.integer("broadcast", 0) == 0 || !spec.attributes().has("axis"))) return spec;
  adapted = spec.node;
  const Index axis = slopes ? 1 : spec.axis(spec.integer("axis", 0), spec.rank(0));
  Shape& shape = adapted.inputs[1].type->shape;
  if (static_cast<std::size_t>(axis) + shape.size() > spec.rank(0))
    refuse(fmt::format("axis {} of a broadcast of {}", axis, program::to_string(shape)), "one that it fits behind");
  while (static_cast<std::size_t>(axis) + shape.size() < spec.rank(0)) shape.push_back(1);
  return Spec(adapted);
}

}  // namespace

UnaryParameters unary_parameters(const Spec& spec, Unary function) {
  const auto alpha = [&](float otherwise) { return spec.real("alpha", otherwise); };
  switch (function) {
    case Unary::elu:
    case Unary::celu:
    case Unary::thresholded_relu:
      return {alpha(1), 0};
    case Unary::leaky_relu:
      return {alpha(0.01F), 0};
    case Unary::selu:
      return {alpha(1.67326319217681884765625F), spec.real("gamma", 1.05070102214813232421875F)};
    case Unary::hard_sigmoid:
      return {alpha(0.2F), spec.real("beta", 0.5F)};
    case Unary::shrink:
      return {spec.real("lambd", 0.5F), spec.real("bias", 0)};
    case Unary::silu:
      return {alpha(1), 0};
    default:
      return {};
  }
}

std::unique_ptr<NodeKernel> make_unary(const Spec& spec, Unary function) {
  spec.require_inputs(1, 1);
  const Physical shapes = physical_shapes(spec, 1);
  const UnaryParameters parameters = unary_parameters(spec, function);
  const auto count = static_cast<std::size_t>(shapes.type.count());
  return with_number(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    Compute compute;
    if constexpr (std::is_floating_point_v<T>) {
      const auto loop = float_loops<T>().unary[static_cast<std::size_t>(function)];
      compute = [=](const Run& run) {
        loop(run.in<T>(0), run.out<T>(0), count, static_cast<T>(parameters.p), static_cast<T>(parameters.q));
      };
    } else {
      const auto loop = integer_loop<T>(function);
      compute = [=](const Run& run) { loop(run.in<T>(0), run.out<T>(0), count); };
    }
    return make_function_kernel(spec, {shapes.type}, std::move(compute), {.in_place = kFirst});
  });
}

std::unique_ptr<NodeKernel> make_binary(const Spec& given, Binary function) {
  KernelNode adapted;
  const Spec spec = with_old_broadcast(given, adapted);
  spec.require_inputs(2, 2);
  require_same_elements(spec, 2);
  const Physical shapes = physical_shapes(spec, 2);
  const BroadcastWalk<2> walk(shapes.output, {shapes.inputs[0], shapes.inputs[1]});
  return with_number(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(
        spec, {shapes.type},
        [=](const Run& run) { apply_binary(walk, function, run.in<T>(0), run.in<T>(1), run.out<T>(0)); },
        {.in_place = in_place_of(shapes)});
  });
}

std::unique_ptr<NodeKernel> make_comparison(const Spec& given, Comparison function) {
  KernelNode adapted;
  const Spec spec = with_old_broadcast(given, adapted);
  spec.require_inputs(2, 2);
  require_same_elements(spec, 2);
  const Physical shapes = physical_shapes(spec, 2);
  const BroadcastWalk<2> walk(shapes.output, {shapes.inputs[0], shapes.inputs[1]});
  TensorType type = shapes.type;
  type.element = Element::boolean;
  return with_number(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {type}, [=](const Run& run) {
      apply_binary(walk, function, run.in<T>(0), run.in<T>(1), run.out<std::uint8_t>(0));
    });
  });
}

std::unique_ptr<NodeKernel> make_variadic(const Spec& spec, Binary function, bool mean) {
  spec.require_inputs(1, 1 << 20);
  const std::size_t inputs = spec.inputs();
  for (std::size_t i = 0; i < inputs; ++i) spec.type(i);
  require_same_elements(spec, inputs);
  const Physical shapes = physical_shapes(spec, inputs);
  // The first two meet in the output, then each further one meets the output.
  const Shape& second = inputs > 1 ? shapes.inputs[1] : shapes.inputs[0];
  const BroadcastWalk<2> first(shapes.output, {shapes.inputs[0], second});
  std::vector<BroadcastWalk<2>> others;
  for (std::size_t i = 2; i < inputs; ++i)
    others.emplace_back(shapes.output, std::array{shapes.output, shapes.inputs[i]});
  const auto count = static_cast<std::size_t>(shapes.type.count());
  return with_number(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {shapes.type}, [=](const Run& run) {
      T* out = run.out<T>(0);
      if (inputs == 1)
        std::copy_n(run.in<T>(0), count, out);
      else
        apply_binary(first, function, run.in<T>(0), run.in<T>(1), out);
      for (std::size_t i = 2; i < inputs; ++i)
        apply_binary(others[i - 2], function, static_cast<const T*>(out), run.in<T>(i), out);
      if constexpr (std::is_floating_point_v<T>)
        if (mean)
          float_loops<T>().unary[static_cast<std::size_t>(Unary::linear)](out, out, count,
                                                                          T(1) / static_cast<T>(inputs), T(0));
    });
  });
}

std::unique_ptr<NodeKernel> make_logic(const Spec& given, Logic function) {
  KernelNode adapted;
  const Spec spec = with_old_broadcast(given, adapted);
  spec.require_inputs(2, 2);
  require_same_elements(spec, 2);
  const Physical shapes = physical_shapes(spec, 2);
  const BroadcastWalk<2> walk(shapes.output, {shapes.inputs[0], shapes.inputs[1]});
  if (function == Logic::logical_and || function == Logic::logical_or || function == Logic::logical_xor) {
    spec.require_element(0, {Element::boolean});
    return make_function_kernel(spec, {shapes.type}, [=](const Run& run) {
      apply_rows(walk, boolean_loop(function), run.in<std::uint8_t>(0), run.in<std::uint8_t>(1),
                 run.out<std::uint8_t>(0));
    });
  }
  spec.require_element(0, {Element::i64, Element::u64});
  const std::string direction = spec.text("direction", "");
  if (function == Logic::shift && direction != "LEFT" && direction != "RIGHT")
    refuse(fmt::format("direction '{}'", direction), "LEFT or RIGHT");
  const auto loop = bit_loop(function, direction == "RIGHT");
  return make_function_kernel(spec, {shapes.type}, [=](const Run& run) {
    apply_rows(walk, loop, run.in<std::uint64_t>(0), run.in<std::uint64_t>(1), run.out<std::uint64_t>(0));
  });
}

std::unique_ptr<NodeKernel> make_not(const Spec& spec, PackedWeights*) {
  spec.require_inputs(1, 1);
  spec.require_element(0, {Element::boolean});
  const Physical shapes = physical_shapes(spec, 1);
  const Index count = shapes.type.count();
  return make_function_kernel(spec, {shapes.type},
                              [count](const Run& run) {
                                const auto* x = run.in<std::uint8_t>(0);
                                auto* out = run.out<std::uint8_t>(0);
                                for (Index i = 0; i < count; ++i) out[i] = x[i] == 0 ? 1 : 0;
                              },
                              {.in_place = kFirst});
}

std::unique_ptr<NodeKernel> make_bitwise_not(const Spec& spec, PackedWeights*) {
  spec.require_inputs(1, 1);
  spec.require_element(0, {Element::i64, Element::u64});
  const Index count = spec.type(0).count();
  return make_function_kernel(spec, {spec.type(0)}, [count](const Run& run) {
    for (Index i = 0; i < count; ++i) run.out<std::uint64_t>(0)[i] = ~run.in<std::uint64_t>(0)[i];
  });
}

std::unique_ptr<NodeKernel> make_clip(const Spec& spec, PackedWeights*) {
  spec.require_inputs(1, 3);
  for (std::size_t i = 1; i < spec.inputs(); ++i)
    if (spec.has(i) && spec.type(i).count() != 1)
      refuse(fmt::format("a bound of shape {}", program::to_string(spec.shape(i))), "one number");
  const KernelNode first{.name = spec.node.name,
                         .op_type = spec.node.op_type,
                         .inputs = {spec.node.inputs[0]},
                         .output_layouts = spec.node.output_layouts};
  const Physical shapes = physical_shapes(Spec(first), 1);
  const auto count = static_cast<std::size_t>(shapes.type.count());
  const bool has_low = spec.has(1), has_high = spec.has(2);
  for (std::size_t i = 1; i < 3; ++i)
    if (spec.has(i) && spec.element(i) != spec.element(0))
      refuse(fmt::format("a bound of {}", to_string(spec.element(i))), std::string(to_string(spec.element(0))));
  const float low = spec.real("min", std::numeric_limits<float>::lowest());
  const float high = spec.real("max", std::numeric_limits<float>::max());
  const bool by_attribute = spec.node.opset < 11;
  return with_number(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(
        spec, {shapes.type},
        [=](const Run& run) {
          constexpr bool kFloating = std::is_floating_point_v<T>;
          T least = kFloating ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
          T most = kFloating ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
          if constexpr (kFloating)
            if (by_attribute) least = static_cast<T>(low), most = static_cast<T>(high);
          if (has_low) least = *run.in<T>(1);
          if (has_high) most = *run.in<T>(2);
          const T* x = run.in<T>(0);
          T* out = run.out<T>(0);
          if constexpr (kFloating)
            float_loops<T>().unary[static_cast<std::size_t>(Unary::clip)](x, out, count, least, most);
          else
            for (std::size_t i = 0; i < count; ++i) out[i] = std::min(std::max(x[i], least), most);
        },
        {.in_place = kFirst});
  });
}

std::unique_ptr<NodeKernel> make_gelu(const Spec& spec, PackedWeights*) {
  const std::string approximate = spec.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    refuse(fmt::format("approximate '{}'", approximate), "none or tanh");
  return make_unary(spec, approximate == "tanh" ? Unary::gelu_tanh : Unary::gelu);
}

// Of com.microsoft: BiasGelu, and FastGelu, whose bias may be absent.
std::unique_ptr<NodeKernel> make_bias_gelu(const Spec& spec, PackedWeights*) {
  spec.require_inputs(1, 2);
  const Unary function = spec.node.op_type == "FastGelu" ? Unary::gelu_tanh : Unary::gelu;
  if (!spec.has(1)) {
    KernelNode alone = spec.node;
    alone.inputs.resize(1);
    return make_unary(Spec(alone), function);
  }
  const Physical shapes = physical_shapes(spec, 2);
  require_same_elements(spec, 2);
  const BroadcastWalk<2> walk(shapes.output, {shapes.inputs[0], shapes.inputs[1]});
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(
        spec, {shapes.type},
        [=](const Run& run) {
          const auto loop = [function](const T* a, const T* b, T* out, std::size_t n, Scalar scalar) {
            float_loops<T>().binary[static_cast<std::size_t>(Binary::add)](a, b, out, n, scalar);
            float_loops<T>().unary[static_cast<std::size_t>(function)](out, out, n, T(0), T(0));
          };
          apply_rows(walk, loop, run.in<T>(0), run.in<T>(1), run.out<T>(0));
        },
        {.in_place = in_place_of(shapes) & kFirstTwo});
  });
}

std::unique_ptr<NodeKernel> make_is_nan(const Spec& spec, PackedWeights*) {
  spec.require_inputs(1, 1);
  const Index count = spec.type(0).count();
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {{Element::boolean, spec.shape(0), spec.type(0).layout}}, [=](const Run& run) {
      for (Index i = 0; i < count; ++i) run.out<std::uint8_t>(0)[i] = std::isnan(run.in<T>(0)[i]) ? 1 : 0;
    });
  });
}

std::unique_ptr<NodeKernel> make_is_inf(const Spec& spec, PackedWeights*) {
  spec.require_inputs(1, 1);
  const Index count = spec.type(0).count();
  const bool positive = spec.integer("detect_positive", 1) != 0, negative = spec.integer("detect_negative", 1) != 0;
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {{Element::boolean, spec.shape(0), spec.type(0).layout}}, [=](const Run& run) {
      for (Index i = 0; i < count; ++i) {
        const T x = run.in<T>(0)[i];
        run.out<std::uint8_t>(0)[i] = std::isinf(x) && (x > 0 ? positive : negative) ? 1 : 0;
      }
    });
  });
}

std::unique_ptr<NodeKernel> make_mod(const Spec& spec, PackedWeights*) {
  if (is_floating(spec.element(0)) && spec.integer("fmod", 0) == 0) refuse("floats and fmod 0", "fmod 1 for floats");
  if (is_floating(spec.element(0))) return make_binary(spec, Binary::fmod);
  spec.require_inputs(2, 2);
  require_same_elements(spec, 2);
  const Physical shapes = physical_shapes(spec, 2);
  const BroadcastWalk<2> walk(shapes.output, {shapes.inputs[0], shapes.inputs[1]});
  const bool truncated = spec.integer("fmod", 0) != 0;
  return with_number(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {shapes.type}, [=](const Run& run) {
      if constexpr (!std::is_floating_point_v<T>)
        apply_rows(walk, remainder_loop<T>(truncated), run.in<T>(0), run.in<T>(1), run.out<T>(0));
    });
  });
}

// The result has the type of the base. The exponent may have another; it is then converted.
std::unique_ptr<NodeKernel> make_pow(const Spec& given, PackedWeights*) {
  KernelNode adapted;
  const Spec spec = with_old_broadcast(given, adapted);
  spec.require_inputs(2, 2);
  // Squares are what norms and approximations of GELU ask for most.
  const Tensor* known = spec.node.inputs[1].constant;
  if (known != nullptr && known->type.count() == 1 && spec.known_reals(1)[0] == 2 && spec.rank(1) <= spec.rank(0) &&
      is_floating(spec.element(0))) {
    KernelNode square = spec.node;
    square.inputs.resize(1);
    return make_unary(Spec(square), Unary::square);
  }
  if (spec.element(0) == spec.element(1)) return make_binary(spec, Binary::pow);
  const Physical shapes = physical_shapes(spec, 2);
  const BroadcastWalk<2> walk(shapes.output, {shapes.inputs[0], shapes.inputs[1]});
  return with_number(spec.element(0), [&](auto base) {
    return with_number(spec.element(1), [&](auto exponent) {
      using B = decltype(base);
      using E = decltype(exponent);
      return make_function_kernel(spec, {shapes.type}, [=](const Run& run) {
        const Index length = walk.row(), a_step = walk.steps[0].back(), b_step = walk.steps[1].back();
        walk.for_each_row([&](const auto& at, Index first) {
          const B* a = run.in<B>(0) + at[0];
          const E* b = run.in<E>(1) + at[1];
          for (Index i = 0; i < length; ++i)
            run.out<B>(0)[first + i] =
                static_cast<B>(std::pow(static_cast<double>(a[i * a_step]), static_cast<double>(b[i * b_step])));
        });
      });
    });
  });
}

}  // namespace doppler::model
