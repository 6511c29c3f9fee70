#include "doppler/kernels/onnx/window.h"

#include <algorithm>

namespace doppler::model {
namespace {

constexpr Index kLargest = 1 << 20;        // of a kernel, stride, dilation or pad
constexpr Index kLargestWindow = 1 << 24;  // elements

Shape list_of(const Spec& spec, std::string_view name, std::size_t rank, Index otherwise, Index least) {
  const auto given = spec.attributes().integers(name);
  if (!given || given->empty()) return Shape(rank, otherwise);
  if (given->size() != rank)
    refuse(fmt::format("{} {}", name, program::to_string(*given)), fmt::format("{} of them", rank));
  for (const Index value : *given)
    if (value < least || value > kLargest)
      refuse(fmt::format("{} {}", name, program::to_string(*given)), fmt::format("{} or more", least));
  return *given;
}

// Splits what "same" padding needs; the odd one goes to the end, or to the begin for SAME_LOWER.
void pad_same(Window& w, std::size_t i, bool upper) {
  const Index out = (w.in[i] + w.strides[i] - 1) / w.strides[i];
  const Index reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
  const Index total = std::max<Index>(0, (out - 1) * w.strides[i] + reach - w.in[i]);
  w.before[i] = upper ? total / 2 : total - total / 2;
  w.after[i] = total - w.before[i];
}

}  // namespace

Window window_of(const Spec& spec, const Shape& shape, std::optional<Shape> kernel, bool ceil) {
  if (shape.size() < 3 || shape.size() > 6)
    refuse(fmt::format("shape {}", program::to_string(shape)), "3 to 6 dimensions");
  const std::size_t rank = shape.size() - 2;
  Window w;
  w.in.assign(shape.begin() + 2, shape.end());
  w.kernel = list_of(spec, "kernel_shape", rank, 0, 1);
  if (kernel) {
    if (spec.attributes().has("kernel_shape") && w.kernel != *kernel)
      refuse(
          fmt::format("kernel_shape {} for weights of {}", program::to_string(w.kernel), program::to_string(*kernel)),
          "the same");
    w.kernel = *kernel;
  }
  for (const Index size : w.kernel)
    if (size < 1 || size > kLargest)
      refuse(fmt::format("a kernel of {}", program::to_string(w.kernel)), "sizes from 1");
  checked_shape(w.kernel);
  if (w.kernel_count() > kLargestWindow)
    refuse(fmt::format("a kernel of {}", program::to_string(w.kernel)),
           fmt::format("{} elements at most", kLargestWindow));
  w.strides = list_of(spec, "strides", rank, 1, 1);
  w.dilations = list_of(spec, "dilations", rank, 1, 1);
  const Shape pads = list_of(spec, "pads", 2 * rank, 0, 0);
  w.before.assign(pads.begin(), pads.begin() + static_cast<Index>(rank));
  w.after.assign(pads.begin() + static_cast<Index>(rank), pads.end());
  const std::string automatic = spec.text("auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID" && automatic != "SAME_UPPER" && automatic != "SAME_LOWER")
    refuse(fmt::format("auto_pad '{}'", automatic), "NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  for (std::size_t i = 0; i < rank; ++i) {
    if (automatic == "VALID") w.before[i] = w.after[i] = 0;
    if (automatic.starts_with("SAME")) pad_same(w, i, automatic == "SAME_UPPER");
    const Index reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    const Index room = w.in[i] + w.before[i] + w.after[i] - reach;
    Index out = room < 0 ? 0 : room / w.strides[i] + 1;
    if (ceil && room >= 0 && room % w.strides[i] != 0 && out * w.strides[i] < w.in[i] + w.before[i]) ++out;
    if (out < 1)
      refuse(fmt::format("a window of {} over {}", program::to_string(w.kernel), program::to_string(w.in)),
             "one that fits");
    w.out.push_back(out);
  }
  return w;
}

}  // namespace doppler::model
