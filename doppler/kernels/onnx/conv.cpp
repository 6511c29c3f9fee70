#include <algorithm>
#include <array>

#include "doppler/kernels/onnx/movement.h"
#include "doppler/kernels/onnx/primitive.h"
#include "doppler/kernels/onnx/window.h"

namespace doppler::model {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;

struct ConvNode {
  DirectConv direct;
  TensorType in, out;
  bool bias = false, residual = false;
  Activation activation;
};

ConvNode read_conv(const Spec& spec) {
  spec.require_inputs(2, 4);
  const Shape &x = spec.shape(0), &w = spec.shape(1);
  if (w.size() != x.size() || x.size() < 3)
    refuse(fmt::format("data of {} and weights of {}", program::to_string(x), program::to_string(w)),
           "as many dimensions, 3 or more");
  ConvNode conv;
  conv.direct.window = window_of(spec, x, Shape(w.begin() + 2, w.end()));
  const Index groups = spec.integer("group", 1);
  if (groups < 1 || w[1] < 1 || x[1] % w[1] != 0 || x[1] / w[1] != groups || w[0] % groups != 0 || w[0] < 1)
    refuse(fmt::format("{} groups, data of {} and weights of {}", groups, program::to_string(x), program::to_string(w)),
           "channels that fit");
  conv.direct.batch = x[0];
  conv.direct.in_channels = x[1];
  conv.direct.out_channels = w[0];
  conv.direct.groups = groups;
  conv.in = spec.type(0);
  conv.out = {spec.element(0), {x[0], w[0]}, spec.output_layout(0)};
  conv.out.shape.insert(conv.out.shape.end(), conv.direct.window.out.begin(), conv.direct.window.out.end());
  conv.out.shape = checked_shape(std::move(conv.out.shape));
  check_layout(conv.in);
  check_layout(conv.out);
  conv.bias = spec.has(2);
  conv.residual = spec.has(3);
  conv.activation = activation_of(spec);
  for (std::size_t i = 1; i < spec.inputs(); ++i)
    if (spec.has(i) && spec.element(i) != spec.element(0))
      refuse(fmt::format("input {} of {}", i, to_string(spec.element(i))), std::string(to_string(spec.element(0))));
  if (spec.type(1).layout != Layout::row_major) refuse("weights in another layout", "row-major");
  if (conv.bias && spec.shape(2) != Shape{w[0]})
    refuse(fmt::format("a bias of shape {}", program::to_string(spec.shape(2))), fmt::format("[{}]", w[0]));
  if (conv.residual && (spec.shape(3) != conv.out.shape || spec.type(3).layout != conv.out.layout))
    refuse(fmt::format("a residual of {}", to_string(spec.type(3))), to_string(conv.out));
  return conv;
}

Shape minus_one(Shape dilations) {
  for (Index& dilation : dilations) --dilation;
  return dilations;
}

// Weights as oneDNN has them: groups come first.
Shape grouped(const Shape& weights, Index groups) {
  if (groups == 1) return weights;
  Shape shape = {groups, weights[0] / groups};
  shape.insert(shape.end(), weights.begin() + 1, weights.end());
  return shape;
}

// A primitive with data, weights and bias: what convolutions and their transposes have in common around it. Tensors
// that it wants in another format than they come in are reordered in scratch memory.
struct Around {
  std::shared_ptr<PrimitiveCall> call, reorder_in, reorder_weights, reorder_out;
  PackedTensor weights;
  std::size_t in = 0, packed = 0, out = 0, scratch = 0, bytes = 0;  // where in scratch memory
  bool bias = false, residual = false;
  std::string implementation;

  void run(const Run& run) const {
    const std::byte* x = run.inputs[0];
    const std::byte* w = weights != nullptr ? weights.get() : run.inputs[1];
    std::byte* y = run.outputs[0];
    if (reorder_in != nullptr) {
      reorder_in->run(std::array<const std::byte*, 2>{x, run.scratch + in});
      x = run.scratch + in;
    }
    if (reorder_weights != nullptr) {
      reorder_weights->run(std::array<const std::byte*, 2>{w, run.scratch + packed});
      w = run.scratch + packed;
    }
    if (reorder_out != nullptr) y = run.scratch + out;
    std::array<const std::byte*, 6> addresses = {x, w, y, run.scratch + scratch};
    std::size_t count = 4;
    if (bias) addresses[count++] = run.inputs[2];
    if (residual) addresses[count++] = run.inputs[3];
    call->run(std::span(addresses.data(), count));
    if (reorder_out != nullptr) reorder_out->run(std::array<const std::byte*, 2>{y, run.outputs[0]});
  }
};

struct GivenDescs {
  Desc in, weights, out;
};

template <typename Primitive, typename PrimitiveDesc>
Around around_primitive(const PrimitiveDesc& chosen, const GivenDescs& given, const Tensor* constant,
                        PackedWeights* packed, std::optional<PrimitiveCall::Argument> residual, bool bias) {
  Around around;
  ScratchPlan plan;
  const auto reorder = [&](const Desc& from, const Desc& to, std::shared_ptr<PrimitiveCall>& call, std::size_t& at,
                           const Desc& temporary) {
    if (from == to) return;
    call = std::make_shared<PrimitiveCall>(make_reorder_call(from, to));
    at = plan.add(temporary.get_size());
  };
  reorder(given.in, chosen.src_desc(), around.reorder_in, around.in, chosen.src_desc());
  reorder(chosen.dst_desc(), given.out, around.reorder_out, around.out, chosen.dst_desc());
  if (constant != nullptr)
    around.weights = pack(constant->data.get(), given.weights, chosen.weights_desc(), packed);
  else
    reorder(given.weights, chosen.weights_desc(), around.reorder_weights, around.packed, chosen.weights_desc());
  std::vector<PrimitiveCall::Argument> arguments = {{DNNL_ARG_SRC, chosen.src_desc()},
                                                    {DNNL_ARG_WEIGHTS, chosen.weights_desc()},
                                                    {DNNL_ARG_DST, chosen.dst_desc()},
                                                    {DNNL_ARG_SCRATCHPAD, chosen.scratchpad_desc()}};
  if (bias) arguments.push_back({DNNL_ARG_BIAS, chosen.bias_desc()});
  if (residual) arguments.push_back(*residual);
  around.bias = bias;
  around.residual = residual.has_value();
  around.scratch = plan.add(chosen.scratchpad_desc().get_size());
  around.bytes = plan.bytes();
  around.call = std::make_shared<PrimitiveCall>(Primitive(chosen), std::move(arguments));
  around.implementation = fmt::format("onednn {}", chosen.impl_info_str());
  return around;
}

// The end of a convolution where the primitive does not do it: in formats that its post-operations do not have.
template <typename T>
void finish(const ConvNode& conv, T* out, const T* residual) {
  const auto count = static_cast<std::size_t>(conv.out.count());
  if (residual != nullptr)
    float_loops<T>().binary[static_cast<std::size_t>(Binary::add)](out, residual, out, count, Scalar::none);
  conv.activation.apply(out, count);
}

// What oneDNN would do for a convolution. Between row-major tensors it chooses its formats itself; what follows the
// convolution is then ours, if there is a residual, which is row-major too.
struct ChosenConv {
  dnnl::convolution_forward::primitive_desc primitive;
  GivenDescs given;
  std::optional<PrimitiveCall::Argument> residual = std::nullopt;
  bool own_end = false;
};

// Returns nothing if oneDNN has no implementation but its reference.
std::optional<ChosenConv> choose_conv(const Spec& spec, const ConvNode& conv) try {
  const Window& w = conv.direct.window;
  const bool free_in = conv.in.layout == Layout::row_major, free_out = conv.out.layout == Layout::row_major;
  const Shape weights = grouped(spec.shape(1), conv.direct.groups);
  const Desc in = desc_of(conv.in), out = desc_of(conv.out);
  ChosenConv chosen{{}, {in, strided_desc(weights, row_major_steps(weights)), out}};
  chosen.own_end = free_out && conv.residual;
  dnnl::primitive_attr attr = user_scratch();
  dnnl::post_ops ops;
  if (conv.residual && !chosen.own_end) {
    ops.append_binary(algorithm::binary_add, out);
    chosen.residual = {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, out};
  }
  if (!chosen.own_end) append_activation(ops, conv.activation);
  attr.set_post_ops(ops);
  const Desc src = free_in ? any_desc(conv.in.shape) : in, dst = free_out ? any_desc(conv.out.shape) : out;
  const Shape dilations = minus_one(w.dilations);
  using Convolution = dnnl::convolution_forward;
  const auto kind = prop_kind::forward_inference;
  const auto how = algorithm::convolution_direct;
  const auto desc =
      conv.bias ? Convolution::desc(kind, how, src, any_desc(weights), any_desc({conv.out.shape[1]}), dst, w.strides,
                                    dilations, w.before, w.after)
                : Convolution::desc(kind, how, src, any_desc(weights), dst, w.strides, dilations, w.before, w.after);
  chosen.primitive = Convolution::primitive_desc(desc, attr, processor_engine(), true);
  if (!choose_implementation(chosen.primitive)) return std::nullopt;
  return chosen;
} catch (const dnnl::error&) {
  return std::nullopt;  // a combination that it does not have
}

std::unique_ptr<NodeKernel> make_primitive(const Spec& spec, const ConvNode& conv, PackedWeights* packed) {
  const std::optional<ChosenConv> chosen = choose_conv(spec, conv);
  if (!chosen) return nullptr;
  const Around around = around_primitive<dnnl::convolution_forward>(
      chosen->primitive, chosen->given, spec.node.inputs[1].constant, packed, chosen->residual, conv.bias);
  const std::uint32_t not_read = around.weights != nullptr ? 1U << 1 : 0U;
  return make_function_kernel(
      spec, {conv.out},
      [around, conv, own_end = chosen->own_end](const Run& run) {
        around.run(run);
        if (own_end) finish(conv, run.out<float>(0), run.in<float>(3));
      },
      {.scratch_bytes = around.bytes, .not_read = not_read, .implementation = around.implementation});
}

}  // namespace

std::unique_ptr<NodeKernel> make_conv(const Spec& spec, PackedWeights* packed) {
  const ConvNode conv = read_conv(spec);
  const bool some = conv.in.count() > 0 && conv.out.count() > 0;
  if (spec.element(0) == Element::f32 && some)
    if (auto kernel = make_primitive(spec, conv, packed)) return kernel;
  spec.require_row_major();
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {conv.out}, [=](const Run& run) {
      run_direct_conv(conv.direct, run.in<T>(0), run.in<T>(1), run.in<T>(2), run.out<T>(0));
      finish(conv, run.out<T>(0), conv.residual ? run.in<T>(3) : nullptr);
    });
  });
}

std::vector<LayoutChoice> conv_layouts(const Spec& spec) {
  if (spec.element(0) != Element::f32 || spec.rank(0) < 3 || spec.rank(0) > 5) return {};
  const ConvNode conv = read_conv(spec);
  std::vector<LayoutChoice> choices;
  const auto add = [&](Layout in, Layout out) {
    ConvNode laid_out = conv;
    laid_out.in.layout = in;
    laid_out.out.layout = out;
    if (conv.in.shape[1] % block_of(in) != 0 || conv.out.shape[1] % block_of(out) != 0) return;
    if (choose_conv(spec, laid_out)) choices.push_back({{in, Layout::row_major, Layout::row_major, out}, {out}});
  };
  add(Layout::channels_last, Layout::channels_last);
  add(Layout::row_major, Layout::channels_last);
  add(Layout::blocked16, Layout::blocked16);
  add(Layout::row_major, Layout::blocked16);
  return choices;
}

std::unique_ptr<NodeKernel> make_conv_transpose(const Spec& spec, PackedWeights* packed) {
  spec.require_row_major();
  spec.require_inputs(2, 3);
  const Shape &x = spec.shape(0), &weights = spec.shape(1);
  if (weights.size() != x.size() || x.size() < 3 || x.size() > 6 || weights[0] != x[1])
    refuse(fmt::format("data of {} and weights of {}", program::to_string(x), program::to_string(weights)),
           "channels that fit, and 3 to 6 dimensions");
  const std::size_t rank = x.size() - 2;
  const Index groups = spec.integer("group", 1);
  if (groups < 1 || x[1] % groups != 0) refuse(fmt::format("{} groups", groups), "a divisor of the channels");
  const Index channels = weights[1] * groups;
  const auto list = [&](std::string_view name, std::size_t size, Index otherwise) {
    const auto given = spec.attributes().integers(name);
    if (!given || given->empty()) return Shape(size, otherwise);
    for (const Index value : *given)
      if (given->size() != size || value < (name == "pads" ? -(Index{1} << 31) : 0) || value > Index{1} << 31)
        refuse(fmt::format("{} {}", name, program::to_string(*given)), fmt::format("{} sizes", size));
    return *given;
  };
  // The window slides over the output, which takes the place of the input.
  DirectConv direct{{}, x[0], x[1], channels, groups};
  Window& w = direct.window;
  w.out.assign(x.begin() + 2, x.end());
  w.kernel.assign(weights.begin() + 2, weights.end());
  w.strides = list("strides", rank, 1);
  w.dilations = list("dilations", rank, 1);
  Shape pads = list("pads", 2 * rank, 0);
  const Shape extra = list("output_padding", rank, 0), wanted = list("output_shape", rank, -1);
  const std::string automatic = spec.text("auto_pad", "NOTSET");
  Shape out = {x[0], channels};
  for (std::size_t i = 0; i < rank; ++i) {
    if (w.strides[i] < 1 || w.dilations[i] < 1 || w.kernel[i] < 1) refuse("a stride, dilation or kernel below 1", "1");
    const Index whole = w.strides[i] * (w.out[i] - 1) + extra[i] + (w.kernel[i] - 1) * w.dilations[i] + 1;
    if (wanted[i] >= 0 || automatic.starts_with("SAME")) {
      const Index size = wanted[i] >= 0 ? wanted[i] : w.out[i] * w.strides[i];
      const Index total = std::max<Index>(0, whole - size);
      const Index half = total / 2;
      pads[i] = automatic == "SAME_UPPER" ? half : total - half;
      pads[rank + i] = total - pads[i];
      w.in.push_back(size);
    } else {
      w.in.push_back(whole - pads[i] - pads[rank + i]);
    }
    if (w.in[i] < 1) refuse(fmt::format("an output of size {}", w.in[i]), "1 or more");
    out.push_back(w.in[i]);
  }
  w.before.assign(pads.begin(), pads.begin() + static_cast<Index>(rank));
  w.after.assign(pads.begin() + static_cast<Index>(rank), pads.end());
  if (spec.has(2) && spec.shape(2) != Shape{channels}) refuse("a bias of another size", fmt::format("[{}]", channels));
  const TensorType type{spec.element(0), checked_shape(out)};
  for (std::size_t i = 1; i < spec.inputs(); ++i)
    if (spec.has(i)) spec.require_element(i, {spec.element(0)});
  const auto primitive = [&]() -> std::unique_ptr<NodeKernel> {
    if (spec.element(0) != Element::f32 || x.size() > 5 || spec.type(0).count() == 0) return nullptr;
    try {
      // ONNX has the weights by input channels; oneDNN by output channels, with groups first.
      Shape shape = {groups, weights[1], weights[0] / groups};
      shape.insert(shape.end(), weights.begin() + 2, weights.end());
      const Index taps = w.kernel_count();
      std::vector<Index> steps = {weights[0] / groups * weights[1] * taps, taps, weights[1] * taps};
      const std::vector<Index> kernel_steps = row_major_steps(w.kernel);
      steps.insert(steps.end(), kernel_steps.begin(), kernel_steps.end());
      if (groups == 1) {
        shape.erase(shape.begin());
        steps.erase(steps.begin());
      }
      Shape after;
      for (std::size_t i = 0; i < rank; ++i)
        after.push_back((w.out[i] - 1) * w.strides[i] + (w.kernel[i] - 1) * w.dilations[i] + 1 - w.in[i] - w.before[i]);
      const Shape dilations = minus_one(w.dilations);
      using Deconvolution = dnnl::deconvolution_forward;
      const auto how = algorithm::deconvolution_direct;
      const auto kind = prop_kind::forward_inference;
      const auto desc = spec.has(2) ? Deconvolution::desc(kind, how, any_desc(x), any_desc(shape), any_desc({channels}),
                                                          any_desc(out), w.strides, dilations, w.before, after)
                                    : Deconvolution::desc(kind, how, any_desc(x), any_desc(shape), any_desc(out),
                                                          w.strides, dilations, w.before, after);
      Deconvolution::primitive_desc chosen(desc, user_scratch(), processor_engine(), true);
      if (!choose_implementation(chosen)) return nullptr;
      const Around around =
          around_primitive<Deconvolution>(chosen, {desc_of(spec.type(0)), strided_desc(shape, steps), desc_of(type)},
                                          spec.node.inputs[1].constant, packed, std::nullopt, spec.has(2));
      return make_function_kernel(spec, {type}, [around](const Run& run) { around.run(run); },
                                  {.scratch_bytes = around.bytes,
                                   .not_read = around.weights != nullptr ? 1U << 1 : 0U,
                                   .implementation = around.implementation});
    } catch (const dnnl::error&) {
      return nullptr;
    }
  };
  if (auto kernel = primitive()) return kernel;
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {type}, [=](const Run& run) {
      run_direct_conv_transpose(direct, run.in<T>(0), run.in<T>(1), run.in<T>(2), run.out<T>(0));
    });
  });
}

}  // namespace doppler::model
