#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "doppler/kernels/onnx/special.h"

namespace doppler::model {
namespace {

struct ResizeAxis {
  Index in = 1, out = 1;
  double scale = 1, roi_begin = 0, roi_end = 1;
};

struct ResizeRules {
  std::string mode, coordinates, nearest;
  double cubic = -0.75;
  bool exclude_outside = false;
};

// Where position x of the output is in the input.
double source_position(const ResizeRules& rules, const ResizeAxis& axis, Index x) {
  const auto at = static_cast<double>(x);
  // The size of the output counts as the scale has it, without rounding.
  const double last = static_cast<double>(axis.in - 1), steps = axis.scale * static_cast<double>(axis.in) - 1;
  if (rules.coordinates == "half_pixel") return (at + 0.5) / axis.scale - 0.5;
  if (rules.coordinates == "pytorch_half_pixel") return axis.out > 1 ? (at + 0.5) / axis.scale - 0.5 : 0;
  if (rules.coordinates == "align_corners") return steps > 0 ? at * last / steps : 0;
  if (rules.coordinates == "asymmetric") return at / axis.scale;
  if (rules.coordinates == "tf_half_pixel_for_nn") return (at + 0.5) / axis.scale;
  if (rules.coordinates == "half_pixel_symmetric") {
    // The output would have this size if sizes were no integers; what is missing is shared by both ends.
    const double whole = axis.scale * static_cast<double>(axis.in);
    const double shift = static_cast<double>(axis.in) / 2 * (1 - static_cast<double>(axis.out) / whole);
    return shift + (at + 0.5) / axis.scale - 0.5;
  }
  if (rules.coordinates == "tf_crop_and_resize") {
    if (!(steps > 0)) return 0.5 * (axis.roi_begin + axis.roi_end) * last;
    return axis.roi_begin * last + at * (axis.roi_end - axis.roi_begin) * last / steps;
  }
  refuse(fmt::format("coordinate_transformation_mode '{}'", rules.coordinates), "one of ONNX's");
}

// Element of the input and its weight in an element of the output.
struct ResizeTap {
  Index at = 0;
  double weight = 0;
};
using ResizeTaps = std::array<ResizeTap, 4>;

ResizeTaps taps_at(const ResizeRules& rules, const ResizeAxis& axis, double x) {
  ResizeTaps taps;
  const auto clamped = [&](double at) {
    return static_cast<Index>(std::clamp(at, 0.0, static_cast<double>(axis.in - 1)));
  };
  const double below = std::floor(x), rest = x - below;
  if (rules.mode == "nearest") {
    const double at = rules.nearest == "floor"               ? below
                      : rules.nearest == "ceil"              ? std::ceil(x)
                      : rules.nearest == "round_prefer_ceil" ? std::floor(x + 0.5)
                                                             : std::ceil(x - 0.5);
    taps[0] = {clamped(at), 1};
    return taps;
  }
  std::size_t count = 2;
  double first = below;
  if (rules.mode == "linear") {
    taps[0].weight = 1 - rest;
    taps[1].weight = rest;
  } else {
    const double a = rules.cubic;
    const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    taps[0].weight = far(rest + 1);
    taps[1].weight = near(rest);
    taps[2].weight = near(1 - rest);
    taps[3].weight = far(2 - rest);
    count = 4;
    first = below - 1;
  }
  double total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double at = first + static_cast<double>(i);
    if (rules.exclude_outside && (at < 0 || at > static_cast<double>(axis.in - 1))) taps[i].weight = 0;
    taps[i].at = clamped(at);
    total += taps[i].weight;
  }
  if (rules.exclude_outside)
    for (ResizeTap& tap : taps) tap.weight /= total;
  return taps;
}

// One axis at a time, from memory to memory.
struct ResizePass {
  Index before = 1, in = 1, out = 1, after = 1;
  std::vector<ResizeTaps> taps;
  std::vector<bool> outside;  // gets the extrapolation value
  std::size_t count = 1;      // taps in use

  template <typename T>
  void run(const T* from, T* to, T extrapolated) const {
    for (Index b = 0; b < before; ++b)
      for (Index o = 0; o < out; ++o) {
        T* row = to + (b * out + o) * after;
        if (outside[static_cast<std::size_t>(o)]) {
          std::fill_n(row, after, extrapolated);
          continue;
        }
        const ResizeTaps& mine = taps[static_cast<std::size_t>(o)];
        const T* base = from + b * in * after;
        if (count == 1) {
          std::copy_n(base + mine[0].at * after, after, row);
          continue;
        }
        for (Index i = 0; i < after; ++i) {
          double sum = 0;
          for (std::size_t t = 0; t < count; ++t)
            sum += mine[t].weight * static_cast<double>(base[mine[t].at * after + i]);
          row[i] = static_cast<T>(std::is_integral_v<T> ? std::nearbyint(sum) : sum);
        }
      }
  }
};

struct ResizeSizes {
  std::vector<ResizeAxis> axes;
  Shape out;
};

ResizeSizes read_sizes(const Spec& spec) {
  const Shape& in = spec.shape(0);
  const std::size_t rank = in.size();
  const bool upsample = spec.node.op_type == "Upsample";
  std::vector<double> scales, roi;
  std::vector<Index> sizes, axes;
  if (const auto given = spec.attributes().integers("axes"))
    for (const Index axis : *given) axes.push_back(spec.axis(axis, rank));
  else
    for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<Index>(i));
  if (upsample && spec.node.opset < 9) {
    const auto given = spec.attributes().reals("scales").value_or(std::vector<float>());
    scales.assign(given.begin(), given.end());
  } else {
    const std::size_t at = upsample || spec.node.opset < 11 ? 1 : 2;
    if (spec.has(at) && spec.type(at).count() > 0) scales = spec.known_reals(at);
    if (at == 2 && spec.has(3) && spec.type(3).count() > 0) sizes = spec.known_integers(3);
    if (at == 2 && spec.has(1)) roi = spec.known_reals(1);
  }
  if (scales.empty() == sizes.empty() || std::max(scales.size(), sizes.size()) != axes.size())
    refuse(fmt::format("{} scales and {} sizes", scales.size(), sizes.size()),
           fmt::format("{} of one of them", axes.size()));
  ResizeSizes result{std::vector<ResizeAxis>(rank), in};
  for (std::size_t i = 0; i < rank; ++i) result.axes[i] = {in[i], in[i]};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<std::size_t>(axes[i]);
    ResizeAxis& axis = result.axes[d];
    if (!sizes.empty()) {
      axis.out = sizes[i];
      axis.scale = static_cast<double>(axis.out) / static_cast<double>(std::max<Index>(1, axis.in));
    } else {
      if (!(scales[i] > 0) || scales[i] > 1e9) refuse(fmt::format("scale {}", scales[i]), "a positive number");
      axis.scale = scales[i];
      // Scales are f32: 0.6 of 5 is 3, and not a little more.
      axis.out = static_cast<Index>(std::floor(static_cast<float>(axis.in) * static_cast<float>(scales[i])));
    }
    if (roi.size() == 2 * axes.size()) {
      axis.roi_begin = roi[i];
      axis.roi_end = roi[axes.size() + i];
    }
    constexpr Index kLongest = 1 << 24;  // elements along one axis, each of which has its taps
    if (axis.out < 0 || axis.out > kLongest) refuse(fmt::format("size {}", axis.out), fmt::format("0 to {}", kLongest));
    if (axis.in == 0 && axis.out > 0) refuse("an empty dimension to enlarge", "elements");
    result.out[d] = axis.out;
  }
  result.out = checked_shape(std::move(result.out));
  return result;
}

ResizeRules read_rules(const Spec& spec) {
  const bool old = spec.node.op_type == "Upsample" || spec.node.opset < 11;
  ResizeRules rules{spec.text("mode", "nearest"),
                    spec.text("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"),
                    spec.text("nearest_mode", old ? "floor" : "round_prefer_floor"),
                    static_cast<double>(spec.real("cubic_coeff_a", -0.75F)), spec.integer("exclude_outside", 0) != 0};
  if (rules.mode == "bilinear") rules.mode = "linear";
  if (rules.mode != "nearest" && rules.mode != "linear" && rules.mode != "cubic")
    refuse(fmt::format("mode '{}'", rules.mode), "nearest, linear or cubic");
  if (spec.integer("antialias", 0) != 0) refuse("antialias 1", "0");
  const std::string policy = spec.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch") refuse(fmt::format("keep_aspect_ratio_policy '{}'", policy), "stretch");
  return rules;
}

}  // namespace

std::unique_ptr<NodeKernel> make_resize(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 4);
  const ResizeRules rules = read_rules(spec);
  const ResizeSizes sizes = read_sizes(spec);
  const bool crops = rules.coordinates == "tf_crop_and_resize";
  std::vector<ResizePass> passes;
  Shape shape = spec.shape(0);
  Index largest = program::product(shape);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const ResizeAxis& axis = sizes.axes[d];
    ResizePass pass;
    const AroundAxis dims = around(shape, static_cast<Index>(d));
    pass.before = dims.before;
    pass.after = dims.after;
    pass.in = axis.in;
    pass.out = axis.out;
    pass.count = rules.mode == "nearest" ? 1 : rules.mode == "linear" ? 2 : 4;
    bool same = axis.in == axis.out;
    for (Index o = 0; o < axis.out; ++o) {
      const double x = source_position(rules, axis, o);
      pass.taps.push_back(taps_at(rules, axis, x));
      pass.outside.push_back(crops && (x < 0 || x > static_cast<double>(axis.in - 1)));
      same &= x == static_cast<double>(o);
    }
    shape[d] = axis.out;
    if (same) continue;
    largest = std::max(largest, program::product(checked_shape(shape)));
    passes.push_back(std::move(pass));
  }
  const float extrapolated = spec.real("extrapolation_value", 0);
  const auto count = static_cast<std::size_t>(spec.type(0).count());
  const auto room = static_cast<std::size_t>(largest);
  return with_wide(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {{spec.element(0), sizes.out}},
                                [=](const Run& run) {
                                  auto* first = reinterpret_cast<T*>(run.scratch);
                                  const std::array<T*, 2> buffers = {first, first + room};
                                  const T* from = run.in<T>(0);
                                  if (passes.empty()) std::copy_n(from, count, run.out<T>(0));
                                  for (std::size_t i = 0; i < passes.size(); ++i) {
                                    T* to = i + 1 == passes.size() ? run.out<T>(0) : buffers[i % 2];
                                    passes[i].run(from, to, static_cast<T>(extrapolated));
                                    from = to;
                                  }
                                },
                                {.scratch_bytes = passes.size() > 1 ? 2 * room * sizeof(T) : 0, .not_read = ~1U});
  });
}

}  // namespace doppler::model
