#include "doppler/kernels/onnx/movement.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "doppler/kernels/onnx/strided.h"

namespace doppler::model {
namespace {

constexpr std::uint32_t kAllButFirst = ~1U;

// Sizes of a tensor as its memory has them, where the axis is, and how many elements of it are one step.
struct AlongAxis {
  Shape shape;
  Index axis;
};
AlongAxis in_memory(const TensorType& type, Index axis) {
  if (type.layout == Layout::row_major) return {type.shape, axis};
  check_layout(type);
  const auto rank = static_cast<Index>(type.shape.size());
  const Index block = block_of(type.layout);
  Shape shape = {type.shape[0]};
  if (block > 1) shape.push_back(type.shape[1] / block);
  shape.insert(shape.end(), type.shape.begin() + 2, type.shape.end());
  shape.push_back(block > 1 ? block : type.shape[1]);
  if (block > 1) return {shape, axis};
  return {shape, axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1};
}

Shape reshaped(const Shape& from, std::vector<Index> target, bool allow_zero) {
  Index known = 1, unknown = -1;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && !allow_zero) {
      if (i >= from.size()) refuse(fmt::format("0 at position {} of the target", i), "a dimension to copy there");
      target[i] = from[i];
    }
    if (target[i] == -1) {
      if (unknown >= 0) refuse(fmt::format("shape {}", program::to_string(target)), "-1 once");
      unknown = static_cast<Index>(i);
    } else if (target[i] < 0) {
      refuse(fmt::format("shape {}", program::to_string(target)), "no negative size but -1");
    }
  }
  Shape rest = target;
  if (unknown >= 0) rest[static_cast<std::size_t>(unknown)] = 1;
  known = program::product(checked_shape(rest));
  const Index count = program::product(from);
  if (unknown >= 0 && known > 0) target[static_cast<std::size_t>(unknown)] = count / known;
  if (unknown >= 0 && known == 0) target[static_cast<std::size_t>(unknown)] = 0;
  if (program::product(target) != count)
    refuse(fmt::format("shape {} for {}", program::to_string(target), program::to_string(from)), "as many elements");
  return target;
}

// Only ints that name new sizes; 1 for all others.
struct SliceArguments {
  std::vector<Index> starts, ends, axes, steps;
};
SliceArguments slice_arguments(const Spec& spec) {
  SliceArguments result;
  if (spec.node.opset < 10) {
    result.starts = spec.attributes().integers("starts").value_or(std::vector<Index>());
    result.ends = spec.attributes().integers("ends").value_or(std::vector<Index>());
    result.axes = spec.attributes().integers("axes").value_or(std::vector<Index>());
  } else {
    spec.require_inputs(3, 5);
    result.starts = spec.known_integers(1);
    result.ends = spec.known_integers(2);
    if (spec.has(3)) result.axes = spec.known_integers(3);
    if (spec.has(4)) result.steps = spec.known_integers(4);
  }
  if (result.axes.empty()) {
    result.axes.resize(result.starts.size());
    std::iota(result.axes.begin(), result.axes.end(), Index{0});
  }
  if (result.steps.empty()) result.steps.assign(result.starts.size(), 1);
  if (result.ends.size() != result.starts.size() || result.axes.size() != result.starts.size() ||
      result.steps.size() != result.starts.size())
    refuse(fmt::format("{} starts, {} ends, {} axes and {} steps", result.starts.size(), result.ends.size(),
                       result.axes.size(), result.steps.size()),
           "as many of each");
  return result;
}

}  // namespace

std::unique_ptr<NodeKernel> make_copy(const Spec& spec, TensorType output, std::uint32_t not_read) {
  const std::size_t bytes = output.bytes();
  return make_function_kernel(spec, {std::move(output)},
                              [bytes](const Run& run) {
                                if (bytes > 0 && run.outputs[0] != run.inputs[0])
                                  std::memcpy(run.outputs[0], run.inputs[0], bytes);
                              },
                              {.in_place = 1, .not_read = not_read});
}

std::unique_ptr<NodeKernel> make_reshape(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 2);
  const auto target = spec.attribute_or_input("shape", 1);
  if (!target) refuse("no shape", "one");
  return make_copy(spec, {spec.element(0), reshaped(spec.shape(0), *target, spec.integer("allowzero", 0) != 0)},
                   kAllButFirst);
}

std::unique_ptr<NodeKernel> make_flatten(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 1);
  Index axis = spec.integer("axis", 1);
  const auto rank = static_cast<Index>(spec.rank(0));
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) refuse(fmt::format("axis {}", axis), fmt::format("0 to {}", rank));
  Shape shape = {1, 1};
  for (Index i = 0; i < rank; ++i) shape[i < axis ? 0 : 1] *= spec.shape(0)[static_cast<std::size_t>(i)];
  return make_copy(spec, {spec.element(0), shape});
}

std::unique_ptr<NodeKernel> make_squeeze(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 2);
  const auto given = spec.attribute_or_input("axes", 1);
  std::vector<Index> axes;
  if (given)
    axes = spec.axes(*given, spec.rank(0));
  else
    for (std::size_t i = 0; i < spec.rank(0); ++i)
      if (spec.shape(0)[i] == 1) axes.push_back(static_cast<Index>(i));
  Shape shape;
  for (std::size_t i = 0; i < spec.rank(0); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<Index>(i)))
      shape.push_back(spec.shape(0)[i]);
    else if (spec.shape(0)[i] != 1)
      refuse(fmt::format("size {} of axis {}", spec.shape(0)[i], i), "1");
  }
  return make_copy(spec, {spec.element(0), shape}, kAllButFirst);
}

std::unique_ptr<NodeKernel> make_unsqueeze(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 2);
  const auto given = spec.attribute_or_input("axes", 1);
  if (!given) refuse("no axes", "some");
  const std::vector<Index> axes = spec.axes(*given, spec.rank(0) + given->size());
  Shape shape = spec.shape(0);
  for (const Index axis : axes) shape.insert(shape.begin() + axis, 1);
  return make_copy(spec, {spec.element(0), shape}, kAllButFirst);
}

std::unique_ptr<NodeKernel> make_identity(const Spec& spec, PackedWeights*) {
  if (spec.output_layout(0) != spec.type(0).layout) refuse("another layout of the output", "that of the input");
  return make_copy(spec, spec.type(0), kAllButFirst);
}

// Inference: everything stays. In training it would be random.
std::unique_ptr<NodeKernel> make_dropout(const Spec& spec, PackedWeights*) {
  spec.require_inputs(1, 3);
  bool keeps_all = spec.node.opset >= 7 || spec.integer("is_test", 0) != 0;
  if (spec.node.opset >= 12 && spec.has(2) && spec.known_integer(2) != 0) {
    const double ratio = spec.has(1) ? spec.known_reals(1).at(0) : 0.5;
    keeps_all = ratio == 0;
  }
  if (!keeps_all) refuse("training with a ratio above 0", "inference: what is dropped is random");
  std::vector<TensorType> outputs = {spec.type(0)};
  const Element mask = spec.node.opset >= 10 ? Element::boolean : spec.element(0);
  if (spec.used(1)) outputs.push_back({mask, spec.shape(0)});
  const std::size_t bytes = spec.type(0).bytes();
  const auto count = static_cast<std::size_t>(spec.type(0).count());
  if (spec.used(1) && mask != Element::boolean) refuse("a mask of floats", "operator set 10 or later");
  return make_function_kernel(spec, outputs,
                              [=](const Run& run) {
                                if (bytes > 0 && run.outputs[0] != run.inputs[0])
                                  std::memcpy(run.outputs[0], run.inputs[0], bytes);
                                if (run.outputs.size() > 1 && run.outputs[1] != nullptr)
                                  std::memset(run.outputs[1], 1, count);
                              },
                              {.in_place = 1, .not_read = kAllButFirst});
}

std::unique_ptr<NodeKernel> make_transpose(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 1);
  const std::size_t rank = spec.rank(0);
  std::vector<Index> order(rank);
  std::iota(order.rbegin(), order.rend(), Index{0});
  if (const auto given = spec.attributes().integers("perm")) {
    order = *given;
    if (order.size() != rank || spec.axes(order, rank).size() != rank)
      refuse(fmt::format("perm {}", program::to_string(order)), fmt::format("{} axes", rank));
    for (Index& axis : order) axis = spec.axis(axis, rank);
  }
  const std::vector<Index> steps = row_major_steps(spec.shape(0));
  Shape shape;
  std::vector<Index> from;
  for (const Index axis : order) {
    shape.push_back(spec.shape(0)[static_cast<std::size_t>(axis)]);
    from.push_back(steps[static_cast<std::size_t>(axis)]);
  }
  const StridedCopy copy(size_of(spec.element(0)), shape, from, row_major_steps(shape));
  return make_function_kernel(spec, {{spec.element(0), shape}},
                              [copy](const Run& run) { copy.run(run.inputs[0], run.outputs[0]); });
}

std::unique_ptr<NodeKernel> make_slice(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  const SliceArguments given = slice_arguments(spec);
  Shape shape = spec.shape(0);
  std::vector<Index> from = row_major_steps(shape);
  const std::vector<Index> steps = from;
  Index offset = 0;
  spec.axes(given.axes, shape.size());  // each once
  for (std::size_t i = 0; i < given.axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(spec.axis(given.axes[i], shape.size()));
    const Index size = shape[axis], step = given.steps[i];
    if (step == 0) refuse("step 0", "another");
    constexpr Index kFar = std::numeric_limits<Index>::max() / 4;
    Index start = std::clamp(given.starts[i], -kFar, kFar), end = std::clamp(given.ends[i], -kFar, kFar);
    if (start < 0) start += size;
    if (end < 0) end += size;
    start = std::clamp<Index>(start, 0, step > 0 ? size : std::max<Index>(size - 1, 0));
    end = std::clamp<Index>(end, step > 0 ? 0 : -1, size);
    const Index distance = step > 0 ? end - start : start - end;
    const Index stride = step == std::numeric_limits<Index>::min() ? kFar : std::abs(step);
    shape[axis] = distance <= 0 || size == 0 ? 0 : (distance - 1) / stride + 1;
    if (shape[axis] > 0) offset += start * steps[axis];
    from[axis] = shape[axis] > 1 ? steps[axis] * step : 0;
  }
  const std::size_t bytes = size_of(spec.element(0));
  const StridedCopy copy(bytes, shape, from, row_major_steps(shape));
  const bool empty = program::product(shape) == 0;
  return make_function_kernel(spec, {{spec.element(0), shape}},
                              [=](const Run& run) {
                                if (!empty)
                                  copy.run(run.inputs[0] + static_cast<std::size_t>(offset) * bytes, run.outputs[0]);
                              },
                              {.not_read = kAllButFirst});
}

std::unique_ptr<NodeKernel> make_expand(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(2, 2);
  const Shape out = broadcast_shapes({spec.shape(0), checked_shape(spec.known_integers(1))});
  Shape aligned(out.size() - spec.rank(0), 1);
  aligned.insert(aligned.end(), spec.shape(0).begin(), spec.shape(0).end());
  std::vector<Index> from = row_major_steps(aligned);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (aligned[i] == 1) from[i] = 0;
  const StridedCopy copy(size_of(spec.element(0)), out, from, row_major_steps(out));
  return make_function_kernel(spec, {{spec.element(0), out}},
                              [copy](const Run& run) { copy.run(run.inputs[0], run.outputs[0]); },
                              {.not_read = kAllButFirst});
}

std::unique_ptr<NodeKernel> make_tile(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  std::vector<Index> repeats;
  if (spec.node.opset >= 6) {
    spec.require_inputs(2, 2);
    repeats = spec.known_integers(1);
  } else {
    spec.require_inputs(3, 3);
    repeats.assign(spec.rank(0), 1);
    repeats[static_cast<std::size_t>(spec.axis(spec.known_integer(2), spec.rank(0)))] = spec.known_integer(1);
  }
  if (repeats.size() != spec.rank(0))
    refuse(fmt::format("{} repeats", repeats.size()), fmt::format("{}, one per dimension", spec.rank(0)));
  Shape out, dims;
  std::vector<Index> from, to;
  const std::vector<Index> steps = row_major_steps(spec.shape(0));
  checked_shape(repeats);
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    checked_shape({repeats[i], spec.shape(0)[i]});
    out.push_back(repeats[i] * spec.shape(0)[i]);
  }
  out = checked_shape(std::move(out));
  const std::vector<Index> out_steps = row_major_steps(out);
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    dims.insert(dims.end(), {repeats[i], spec.shape(0)[i]});
    from.insert(from.end(), {0, steps[i]});
    to.insert(to.end(), {out_steps[i] * spec.shape(0)[i], out_steps[i]});
  }
  const StridedCopy copy(size_of(spec.element(0)), dims, from, to);
  return make_function_kernel(spec, {{spec.element(0), out}},
                              [copy](const Run& run) { copy.run(run.inputs[0], run.outputs[0]); },
                              {.not_read = kAllButFirst});
}

std::unique_ptr<NodeKernel> make_concat(const Spec& spec, PackedWeights*) {
  spec.require_inputs(1, 1 << 20);
  const Index axis = spec.axis(spec.integer("axis", spec.node.opset < 4 ? 1 : 0), spec.rank(0));
  const auto at = static_cast<std::size_t>(axis);
  TensorType out{spec.element(0), spec.shape(0), spec.output_layout(0)};
  Index total = 0;
  for (std::size_t i = 0; i < spec.inputs(); ++i) {
    Shape shape = spec.shape(i);
    if (shape.size() != out.shape.size() || spec.element(i) != out.element || spec.type(i).layout != out.layout)
      refuse(fmt::format("inputs of {} and {}", to_string(spec.type(0)), to_string(spec.type(i))), "ones that fit");
    total += shape[at];
    shape[at] = out.shape[at];
    if (shape != out.shape)
      refuse(fmt::format("inputs of {} and {}", to_string(spec.type(0)), to_string(spec.type(i))), "ones that fit");
  }
  out.shape[at] = total;
  out.shape = checked_shape(std::move(out.shape));
  struct Part {
    std::size_t bytes;  // of one row
  };
  std::vector<Part> parts;
  std::size_t row = 0;
  Index rows = 1;
  for (std::size_t i = 0; i < spec.inputs(); ++i) {
    const AlongAxis memory = in_memory(spec.type(i), axis);
    const AroundAxis dims = around(memory.shape, memory.axis);
    rows = dims.before;
    parts.push_back({static_cast<std::size_t>(dims.size * dims.after) * size_of(out.element)});
    row += parts.back().bytes;
  }
  return make_function_kernel(spec, {out}, [=](const Run& run) {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::size_t bytes = parts[i].bytes;
      const std::byte* from = run.inputs[i];
      std::byte* to = run.outputs[0] + begin;
      if (bytes > 0)
        for (Index r = 0; r < rows; ++r, from += bytes, to += row) std::memcpy(to, from, bytes);
      begin += bytes;
    }
  });
}

std::vector<LayoutChoice> concat_layouts(const Spec& spec) {
  std::vector<LayoutChoice> choices;
  if (spec.rank(0) < 3 || spec.rank(0) > 5) return choices;
  for (const Layout layout : {Layout::channels_last, Layout::blocked16, Layout::blocked8}) {
    bool possible = true;
    for (std::size_t i = 0; i < spec.inputs(); ++i)
      possible &= spec.has(i) && spec.rank(i) == spec.rank(0) && spec.shape(i)[1] % block_of(layout) == 0;
    if (possible) choices.push_back({std::vector<Layout>(spec.inputs(), layout), {layout}});
  }
  return choices;
}

std::vector<LayoutChoice> identity_layouts(const Spec& spec) {
  std::vector<LayoutChoice> choices;
  if (spec.rank(0) < 3 || spec.rank(0) > 5) return choices;
  for (const Layout layout : {Layout::channels_last, Layout::blocked16, Layout::blocked8})
    if (spec.shape(0)[1] % block_of(layout) == 0) choices.push_back({{layout}, {layout}});
  return choices;
}

std::unique_ptr<NodeKernel> make_split(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 2);
  const Index axis = spec.axis(spec.integer("axis", 0), spec.rank(0));
  const AroundAxis dims = around(spec.shape(0), axis);
  const auto outputs = static_cast<Index>(spec.node.outputs_used.size());
  std::vector<Index> sizes = spec.attribute_or_input("split", 1).value_or(std::vector<Index>());
  if (sizes.empty()) {
    if (outputs < 1) refuse("no outputs", "some");
    const Index part = (dims.size + outputs - 1) / outputs;
    for (Index i = 0; i < outputs; ++i) sizes.push_back(std::clamp<Index>(dims.size - i * part, 0, part));
  }
  checked_shape(sizes);
  if (static_cast<Index>(sizes.size()) != outputs || std::accumulate(sizes.begin(), sizes.end(), Index{0}) != dims.size)
    refuse(fmt::format("parts of {} of size {} for {} outputs", program::to_string(sizes), dims.size, outputs),
           "parts that make up the whole");
  std::vector<TensorType> types;
  const std::size_t unit = static_cast<std::size_t>(dims.after) * size_of(spec.element(0));
  std::vector<std::size_t> parts;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Shape shape = spec.shape(0);
    shape[static_cast<std::size_t>(axis)] = sizes[i];
    types.push_back({spec.used(i) ? spec.element(0) : Element::none, shape});
    parts.push_back(static_cast<std::size_t>(sizes[i]) * unit);
  }
  const std::size_t row = static_cast<std::size_t>(dims.size) * unit;
  return make_function_kernel(spec, types,
                              [=](const Run& run) {
                                const std::byte* from = run.inputs[0];
                                for (std::size_t i = 0; i < parts.size(); from += parts[i++]) {
                                  std::byte* to = run.outputs[i];
                                  if (to == nullptr || parts[i] == 0) continue;
                                  for (Index r = 0; r < dims.before; ++r)
                                    std::memcpy(to + static_cast<std::size_t>(r) * parts[i],
                                                from + static_cast<std::size_t>(r) * row, parts[i]);
                                }
                              },
                              {.not_read = kAllButFirst});
}

}  // namespace doppler::model
