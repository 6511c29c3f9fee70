#include <algorithm>
#include <array>
#include <cstring>

#include "doppler/kernels/onnx/movement.h"
#include "doppler/kernels/onnx/strided.h"

namespace doppler::model {
namespace {

struct Pads {
  Shape before, after;
};

Pads pads_of(const Spec& spec) {
  const std::size_t rank = spec.rank(0);
  std::vector<Index> given, axes;
  if (spec.node.opset < 11) {
    given = spec.attributes().integers(spec.attributes().has("pads") ? "pads" : "paddings").value_or(given);
  } else {
    spec.require_inputs(2, 4);
    given = spec.known_integers(1);
  }
  if (spec.has(3)) {
    for (const Index axis : spec.known_integers(3)) axes.push_back(spec.axis(axis, rank));
    spec.axes(axes, rank);
  } else {
    for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<Index>(i));
  }
  if (given.size() != 2 * axes.size())
    refuse(fmt::format("{} pads", given.size()), fmt::format("{}, two per dimension", 2 * axes.size()));
  Pads pads{Shape(rank, 0), Shape(rank, 0)};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    for (const Index amount : {given[i], given[axes.size() + i]})
      if (amount > program::kMostElements / 16 || amount < -program::kMostElements / 16)
        refuse(fmt::format("a pad of {}", amount), "less");
    pads.before[static_cast<std::size_t>(axes[i])] = given[i];
    pads.after[static_cast<std::size_t>(axes[i])] = given[axes.size() + i];
  }
  return pads;
}

enum class PadMode : std::uint8_t { constant, edge, reflect, wrap };

PadMode mode_of(const Spec& spec) {
  const std::string mode = spec.text("mode", "constant");
  if (mode == "constant") return PadMode::constant;
  if (mode == "edge") return PadMode::edge;
  if (mode == "reflect") return PadMode::reflect;
  if (mode == "wrap") return PadMode::wrap;
  refuse(fmt::format("mode '{}'", mode), "constant, edge, reflect or wrap");
}

// Returns the source of position `at` along a dimension of `size` elements; -1 is the constant.
Index source_of(Index at, Index size, PadMode mode) {
  if (at >= 0 && at < size) return at;
  switch (mode) {
    case PadMode::edge:
      return at < 0 ? 0 : size - 1;
    case PadMode::wrap:
      return (at % size + size) % size;
    case PadMode::reflect: {
      if (size == 1) return 0;
      const Index period = 2 * (size - 1), within = (at % period + period) % period;
      return within < size ? within : period - within;
    }
    case PadMode::constant:
      break;
  }
  return -1;
}

}  // namespace

std::unique_ptr<NodeKernel> make_pad(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  const Pads pads = pads_of(spec);
  const PadMode mode = mode_of(spec);
  const Shape& in = spec.shape(0);
  const std::size_t rank = in.size(), bytes = size_of(spec.element(0));
  Shape out(rank), inner(rank);
  Index from_offset = 0, to_offset = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    out[i] = in[i] + pads.before[i] + pads.after[i];
    if (out[i] < 0) refuse(fmt::format("pads that leave {} of {}", out[i], in[i]), "0 or more");
    constexpr Index kLongest = 1 << 24;  // elements along one axis, each of which has its source
    if (mode != PadMode::constant && out[i] > kLongest)
      refuse(fmt::format("a padded size of {}", out[i]), fmt::format("at most {}", kLongest));
    if (mode != PadMode::constant && in[i] == 0 && out[i] > 0) refuse("an empty dimension", "something to repeat");
  }
  out = checked_shape(std::move(out));
  const std::vector<Index> from = row_major_steps(in), to = row_major_steps(out);
  for (std::size_t i = 0; i < rank; ++i) {
    const Index first = std::max<Index>(0, -pads.before[i]);
    inner[i] = std::max<Index>(0, std::min(in[i], in[i] + pads.after[i]) - first);
    from_offset += first * from[i];
    to_offset += std::max<Index>(0, pads.before[i]) * to[i];
  }
  const Index count = program::product(out);
  if (mode == PadMode::constant) {
    const StridedCopy copy(bytes, inner, from, to);
    const bool any = program::product(inner) > 0;
    // The constant is an input since operator set 11, and an attribute of floats before.
    std::uint64_t fixed = 0;  // the bits of one element
    if (spec.node.opset < 11 && spec.element(0) == Element::f32) {
      const float value = spec.real("value", 0);
      std::memcpy(&fixed, &value, sizeof(value));
    }
    const bool given = spec.has(2);
    if (given && (spec.type(2).count() != 1 || spec.element(2) != spec.element(0)))
      refuse(fmt::format("a constant of {}", to_string(spec.type(2))), "one element of the data's type");
    const bool whole = program::product(inner) == count;
    return make_function_kernel(spec, {{spec.element(0), out}},
                                [=](const Run& run) {
                                  if (count == 0) return;
                                  const std::byte* value =
                                      given ? run.inputs[2] : reinterpret_cast<const std::byte*>(&fixed);
                                  const StridedCopy fill(bytes, {count}, {0}, {1});
                                  if (!whole) fill.run(value, run.outputs[0]);
                                  if (any)
                                    copy.run(run.inputs[0] + static_cast<std::size_t>(from_offset) * bytes,
                                             run.outputs[0] + static_cast<std::size_t>(to_offset) * bytes);
                                },
                                {.not_read = 1U << 1 | 1U << 3});
  }
  // Every position along every dimension has its source, in elements.
  std::vector<std::vector<Index>> sources(rank);
  for (std::size_t i = 0; i < rank; ++i)
    for (Index at = 0; at < out[i]; ++at) sources[i].push_back(source_of(at - pads.before[i], in[i], mode) * from[i]);
  return make_function_kernel(spec, {{spec.element(0), out}},
                              [=](const Run& run) {
                                if (count == 0) return;
                                std::array<std::size_t, kMostDimensions> at{};
                                std::byte* write = run.outputs[0];
                                for (Index n = 0; n < count; ++n, write += bytes) {
                                  Index source = 0;
                                  for (std::size_t i = 0; i < rank; ++i) source += sources[i][at[i]];
                                  std::memcpy(write, run.inputs[0] + static_cast<std::size_t>(source) * bytes, bytes);
                                  for (std::size_t i = rank; i-- > 0;) {
                                    if (++at[i] < sources[i].size()) break;
                                    at[i] = 0;
                                  }
                                }
                              },
                              {.not_read = 1U << 1 | 1U << 3});
}

}  // namespace doppler::model
