// Operators on images and boxes.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "doppler/kernels/onnx/convert_elements.h"
#include "doppler/kernels/onnx/special.h"

namespace doppler::model {
namespace {

enum class Outside : std::uint8_t { zeros, border, reflection };

struct GridRules {
  std::string mode;
  Outside outside = Outside::zeros;
  bool corners = false;
};

// A grid goes from -1 to 1 over the pixels' centres (corners) or over their outer edges.
double unnormalized(double x, Index size, bool corners) {
  const auto n = static_cast<double>(size);
  return corners ? (x + 1) / 2 * (n - 1) : ((x + 1) * n - 1) / 2;
}

double reflected(double x, double low, double high) {
  const double span = high - low;
  if (!(span > 0)) return low;
  double away = std::fmod(std::abs(x - low), 2 * span);
  if (away > span) away = 2 * span - away;
  return low + away;
}

double folded_back(double x, Index size, const GridRules& rules) {
  const auto last = static_cast<double>(size - 1);
  if (rules.outside == Outside::border) return std::clamp(x, 0.0, last);
  if (rules.outside == Outside::reflection) {
    const double inside = rules.corners ? reflected(x, 0, last) : reflected(x, -0.5, last + 0.5);
    return std::clamp(inside, 0.0, last);
  }
  return x;
}

template <typename T>
double pixel(const T* image, Index height, Index width, double y, double x, const GridRules& rules) {
  y = folded_back(y, height, rules);
  x = folded_back(x, width, rules);
  const double row = std::nearbyint(y), column = std::nearbyint(x);
  if (!(row >= 0 && row <= static_cast<double>(height - 1) && column >= 0 && column <= static_cast<double>(width - 1)))
    return 0;
  return static_cast<double>(image[static_cast<Index>(row) * width + static_cast<Index>(column)]);
}

std::array<double, 4> cubic_weights(double rest) {
  constexpr double a = -0.75;
  const auto near = [](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(rest + 1), near(rest), near(1 - rest), far(2 - rest)};
}

template <typename T>
double sampled(const T* image, Index height, Index width, double y, double x, const GridRules& rules) {
  if (rules.mode == "nearest") return pixel(image, height, width, std::nearbyint(y), std::nearbyint(x), rules);
  if (rules.mode == "bilinear") {
    y = folded_back(y, height, rules);
    x = folded_back(x, width, rules);
  }
  const double top = std::floor(y), left = std::floor(x), dy = y - top, dx = x - left;
  double sum = 0;
  if (rules.mode == "bilinear") {
    const std::array<double, 2> rows = {1 - dy, dy}, columns = {1 - dx, dx};
    for (std::size_t r = 0; r < 2; ++r)
      for (std::size_t c = 0; c < 2; ++c)
        sum += rows[r] * columns[c] *
               pixel(image, height, width, top + static_cast<double>(r), left + static_cast<double>(c), rules);
    return sum;
  }
  const std::array<double, 4> rows = cubic_weights(dy), columns = cubic_weights(dx);
  for (std::size_t r = 0; r < 4; ++r)
    for (std::size_t c = 0; c < 4; ++c)
      sum += rows[r] * columns[c] *
             pixel(image, height, width, top - 1 + static_cast<double>(r), left - 1 + static_cast<double>(c), rules);
  return sum;
}

GridRules read_grid(const Spec& spec) {
  GridRules rules{spec.text("mode", "bilinear"), Outside::zeros, spec.integer("align_corners", 0) != 0};
  if (rules.mode == "linear") rules.mode = "bilinear";
  if (rules.mode == "cubic") rules.mode = "bicubic";
  if (rules.mode != "bilinear" && rules.mode != "nearest" && rules.mode != "bicubic")
    refuse(fmt::format("mode '{}'", rules.mode), "bilinear, nearest or bicubic");
  const std::string outside = spec.text("padding_mode", "zeros");
  if (outside != "zeros" && outside != "border" && outside != "reflection")
    refuse(fmt::format("padding_mode '{}'", outside), "zeros, border or reflection");
  rules.outside = outside == "zeros" ? Outside::zeros : outside == "border" ? Outside::border : Outside::reflection;
  return rules;
}

struct Roi {
  Index bins_y = 1, bins_x = 1, ratio = 0;
  double scale = 1;
  bool largest = false, half_pixel = true;
};

// Bilinear, with the outermost pixels going on for one pixel more.
template <typename T, typename Visit>
void visit_corners(const T* image, Index height, Index width, double y, double x, Visit visit) {
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return;
  y = std::max(y, 0.0);
  x = std::max(x, 0.0);
  const Index top = std::min(static_cast<Index>(y), height - 1), left = std::min(static_cast<Index>(x), width - 1);
  const Index bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
  const double dy = top == height - 1 ? 0 : y - static_cast<double>(top);
  const double dx = left == width - 1 ? 0 : x - static_cast<double>(left);
  visit((1 - dy) * (1 - dx) * static_cast<double>(image[top * width + left]));
  visit((1 - dy) * dx * static_cast<double>(image[top * width + right]));
  visit(dy * (1 - dx) * static_cast<double>(image[bottom * width + left]));
  visit(dy * dx * static_cast<double>(image[bottom * width + right]));
}

template <typename T>
double roi_bin(const Roi& roi, const T* image, Index height, Index width, const std::array<double, 4>& bin, Index rows,
               Index columns) {
  const auto [y, x, bin_height, bin_width] = bin;
  double sum = 0, largest = 0;
  bool any = false;
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < columns; ++c) {
      const double at_y = y + (static_cast<double>(r) + 0.5) * bin_height / static_cast<double>(rows);
      const double at_x = x + (static_cast<double>(c) + 0.5) * bin_width / static_cast<double>(columns);
      visit_corners(image, height, width, at_y, at_x, [&](double value) {
        sum += value;
        largest = any ? std::max(largest, value) : value;
        any = true;
      });
    }
  return roi.largest ? largest : sum / static_cast<double>(std::max<Index>(1, rows * columns));
}

struct Box {
  double y1, x1, y2, x2;
};
Box read_box(const float* at, bool by_center) {
  const auto a = static_cast<double>(at[0]), b = static_cast<double>(at[1]), c = static_cast<double>(at[2]),
             d = static_cast<double>(at[3]);
  if (by_center) return {b - d / 2, a - c / 2, b + d / 2, a + c / 2};
  return {std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)};
}

double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1),
               width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (height <= 0 || width <= 0) return 0;
  const double both = (a.y2 - a.y1) * (a.x2 - a.x1) + (b.y2 - b.y1) * (b.x2 - b.x1);
  return height * width / (both - height * width);
}

}  // namespace

std::unique_ptr<NodeKernel> make_grid_sample(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(2, 2);
  spec.require_rank(0, 4, 4);
  spec.require_rank(1, 4, 4);
  spec.require_element(1, {spec.element(0)});
  const GridRules rules = read_grid(spec);
  const Shape &x = spec.shape(0), &grid = spec.shape(1);
  if (grid[0] != x[0] || grid[3] != 2 || x[2] < 1 || x[3] < 1)
    refuse(fmt::format("a grid of {} for {}", program::to_string(grid), program::to_string(x)), "[N, H, W, 2]");
  const Index batch = x[0], channels = x[1], height = x[2], width = x[3], out = grid[1] * grid[2];
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {{spec.element(0), {batch, channels, grid[1], grid[2]}}}, [=](const Run& run) {
      for (Index n = 0; n < batch; ++n)
        for (Index c = 0; c < channels; ++c)
          for (Index i = 0; i < out; ++i) {
            const T* at = run.in<T>(1) + (n * out + i) * 2;
            const double column = unnormalized(static_cast<double>(at[0]), width, rules.corners);
            const double row = unnormalized(static_cast<double>(at[1]), height, rules.corners);
            const T* image = run.in<T>(0) + (n * channels + c) * height * width;
            run.out<T>(0)[(n * channels + c) * out + i] =
                static_cast<T>(sampled(image, height, width, row, column, rules));
          }
    });
  });
}

std::unique_ptr<NodeKernel> make_roi_align(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(3, 3);
  spec.require_rank(0, 4, 4);
  spec.require_rank(1, 2, 2);
  spec.require_rank(2, 1, 1);
  spec.require_element(1, {spec.element(0)});
  spec.require_element(2, {Element::i64});
  const std::string mode = spec.text("mode", "avg");
  if (mode != "avg" && mode != "max") refuse(fmt::format("mode '{}'", mode), "avg or max");
  const std::string coordinates =
      spec.text("coordinate_transformation_mode", spec.node.opset < 16 ? "output_half_pixel" : "half_pixel");
  const Roi roi{spec.integer("output_height", 1),
                spec.integer("output_width", 1),
                spec.integer("sampling_ratio", 0),
                static_cast<double>(spec.real("spatial_scale", 1)),
                mode == "max",
                coordinates == "half_pixel"};
  const Shape& x = spec.shape(0);
  if (roi.bins_y < 1 || roi.bins_x < 1 || roi.ratio < 0 || roi.ratio > 1 << 16 || spec.shape(1)[1] != 4 ||
      spec.shape(2)[0] != spec.shape(1)[0] || x[2] < 1 || x[3] < 1)
    refuse("regions or sizes that do not fit", "regions of 4 numbers, an image for each, and sizes from 1");
  const Index regions = spec.shape(1)[0];
  const Index batch = x[0], channels = x[1], height = x[2], width = x[3];
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    const Shape out = {regions, channels, roi.bins_y, roi.bins_x};
    return make_function_kernel(spec, {{spec.element(0), out}}, [=](const Run& run) {
      T* to = run.out<T>(0);
      for (Index r = 0; r < regions; ++r) {
        const Index n = checked_index(run.in<Index>(2)[r], batch, run.where);
        const T* box = run.in<T>(1) + r * 4;
        const double shift = roi.half_pixel ? 0.5 : 0;
        const auto edge = [&](int i) { return static_cast<double>(box[i]) * roi.scale - shift; };
        double region_width = edge(2) - edge(0), region_height = edge(3) - edge(1);
        if (!roi.half_pixel) {
          region_width = std::max(region_width, 1.0);
          region_height = std::max(region_height, 1.0);
        }
        const double bin_height = region_height / static_cast<double>(roi.bins_y);
        const double bin_width = region_width / static_cast<double>(roi.bins_x);
        constexpr double kMostSamples = 65536;
        const auto samples = [&](double size) {
          return roi.ratio > 0 ? roi.ratio : static_cast<Index>(std::clamp(std::ceil(size), 0.0, kMostSamples));
        };
        const Index rows = samples(bin_height), columns = samples(bin_width);
        for (Index c = 0; c < channels; ++c)
          for (Index y = 0; y < roi.bins_y; ++y)
            for (Index b = 0; b < roi.bins_x; ++b)
              *to++ = static_cast<T>(roi_bin(roi, run.in<T>(0) + (n * channels + c) * height * width, height, width,
                                             {edge(1) + static_cast<double>(y) * bin_height,
                                              edge(0) + static_cast<double>(b) * bin_width, bin_height, bin_width},
                                             rows, columns));
      }
    });
  });
}

// How many boxes remain depends on the data, so that all is computed when the kernel is made.
std::unique_ptr<NodeKernel> make_non_max_suppression(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(2, 5);
  spec.require_rank(0, 3, 3);
  spec.require_rank(1, 3, 3);
  spec.require_element(0, {Element::f32});
  spec.require_element(1, {Element::f32});
  const Shape &boxes = spec.shape(0), &scores = spec.shape(1);
  if (boxes[2] != 4 || scores[0] != boxes[0] || scores[2] != boxes[1])
    refuse(fmt::format("boxes of {} and scores of {}", program::to_string(boxes), program::to_string(scores)),
           "[batches, boxes, 4] and [batches, classes, boxes]");
  const bool by_center = spec.integer("center_point_box", 0) != 0;
  const auto number = [&](std::size_t input, double otherwise) {
    if (!spec.has(input)) return otherwise;
    const std::vector<double> values = spec.known_reals(input);
    if (values.size() != 1) refuse(fmt::format("{} numbers in input {}", values.size(), input), "one");
    return values[0];
  };
  const double most = number(2, 0), threshold = number(3, 0);
  const double least = number(4, -std::numeric_limits<double>::infinity());
  const auto* box_data = spec.known(0).as<float>();
  const auto* score_data = spec.known(1).as<float>();
  std::vector<Index> chosen;
  for (Index b = 0; b < boxes[0]; ++b)
    for (Index c = 0; c < scores[1]; ++c) {
      const float* score = score_data + (b * scores[1] + c) * boxes[1];
      std::vector<Index> order;
      for (Index i = 0; i < boxes[1]; ++i)
        if (static_cast<double>(score[i]) > least) order.push_back(i);
      std::stable_sort(order.begin(), order.end(), [&](Index i, Index j) { return score[i] > score[j]; });
      std::vector<Box> kept;
      for (const Index i : order) {
        if (static_cast<double>(kept.size()) >= most) break;
        const Box box = read_box(box_data + (b * boxes[1] + i) * 4, by_center);
        if (std::any_of(kept.begin(), kept.end(), [&](const Box& other) { return overlap(box, other) > threshold; }))
          continue;
        kept.push_back(box);
        chosen.insert(chosen.end(), {b, c, i});
      }
    }
  return make_function_kernel(spec, {{Element::i64, {static_cast<Index>(chosen.size() / 3), 3}}},
                              [chosen](const Run& run) { std::copy(chosen.begin(), chosen.end(), run.out<Index>(0)); },
                              {.not_read = ~0U});
}

}  // namespace doppler::model
