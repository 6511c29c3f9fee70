#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>

#include "doppler/kernels/onnx/convert_elements.h"
#include "doppler/kernels/onnx/special.h"

namespace doppler::model {
namespace {

using Complex = std::complex<double>;

// Computes the transform by its definition: lengths of signals in models are short, and of any factors.
void transform(const Complex* x, Index count, Complex* out, Index outputs, Index length, bool inverse) {
  const double turn = (inverse ? 2 : -2) * std::numbers::pi / static_cast<double>(length);
  for (Index k = 0; k < outputs; ++k) {
    Complex sum = 0;
    for (Index n = 0; n < std::min(count, length); ++n)
      sum += x[n] * std::polar(1.0, turn * static_cast<double>(k * n % length));
    out[k] = inverse ? sum / static_cast<double>(length) : sum;
  }
}

constexpr Index kLongest = Index{1} << 24;

Index known_length(const Spec& spec, std::size_t input, Index otherwise) {
  const Index length = spec.has(input) ? spec.known_integer(input) : otherwise;
  if (length < 1 || length > kLongest) refuse(fmt::format("length {}", length), fmt::format("1 to {}", kLongest));
  return length;
}

}  // namespace

std::unique_ptr<NodeKernel> make_dft(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(1, 3);
  spec.require_rank(0, 2, kMostDimensions);
  const Shape& in = spec.shape(0);
  const Index parts = in.back();
  if (parts != 1 && parts != 2) refuse(program::to_string(in), "1 or 2 numbers at the end");
  Index axis = spec.integer("axis", 1);
  if (spec.node.opset >= 20) axis = spec.has(2) ? spec.known_integer(2) : -2;
  axis = spec.axis(axis, in.size());
  if (axis + 1 == static_cast<Index>(in.size())) refuse("the axis of real and imaginary parts", "another");
  const bool inverse = spec.integer("inverse", 0) != 0, one_sided = spec.integer("onesided", 0) != 0;
  const AroundAxis dims = around(Shape(in.begin(), in.end() - 1), axis);
  const Index length = known_length(spec, 1, dims.size), outputs = one_sided ? length / 2 + 1 : length;
  Shape out = in;
  out[static_cast<std::size_t>(axis)] = outputs;
  out.back() = 2;
  const auto room = static_cast<std::size_t>(dims.size + outputs);
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(
        spec, {{spec.element(0), out}},
        [=](const Run& run) {
          auto* x = reinterpret_cast<Complex*>(run.scratch);
          Complex* y = x + dims.size;
          for (Index b = 0; b < dims.before; ++b)
            for (Index a = 0; a < dims.after; ++a) {
              for (Index i = 0; i < dims.size; ++i) {
                const T* at = run.in<T>(0) + ((b * dims.size + i) * dims.after + a) * parts;
                x[i] = {static_cast<double>(at[0]), parts == 2 ? static_cast<double>(at[1]) : 0};
              }
              transform(x, dims.size, y, outputs, length, inverse);
              for (Index i = 0; i < outputs; ++i) {
                T* to = run.out<T>(0) + ((b * outputs + i) * dims.after + a) * 2;
                to[0] = static_cast<T>(y[i].real());
                to[1] = static_cast<T>(y[i].imag());
              }
            }
        },
        {.scratch_bytes = room * sizeof(Complex), .not_read = ~1U});
  });
}

std::unique_ptr<NodeKernel> make_stft(const Spec& spec, PackedWeights*) {
  spec.require_row_major();
  spec.require_inputs(2, 4);
  spec.require_rank(0, 2, 3);
  const Shape& in = spec.shape(0);
  const Index parts = in.size() == 3 ? in[2] : 1, batch = in[0], samples = in[1];
  if (parts != 1 && parts != 2) refuse(program::to_string(in), "1 or 2 numbers at the end");
  const bool windowed = spec.has(2), one_sided = spec.integer("onesided", 1) != 0;
  if (windowed) spec.require_element(2, {spec.element(0)});
  const Index window = windowed ? spec.type(2).count() : samples;
  const Index step = known_length(spec, 1, 1), length = known_length(spec, 3, window);
  if (windowed && window != length) refuse(fmt::format("a window of {} for frames of {}", window, length), "as many");
  if (length > samples) refuse(fmt::format("frames of {} in {}", length, samples), "shorter ones");
  const Index frames = (samples - length) / step + 1, outputs = one_sided ? length / 2 + 1 : length;
  const auto room = static_cast<std::size_t>(length + outputs);
  return with_float(spec.element(0), [&](auto tag) {
    using T = decltype(tag);
    return make_function_kernel(spec, {{spec.element(0), {batch, frames, outputs, 2}}},
                                [=](const Run& run) {
                                  auto* x = reinterpret_cast<Complex*>(run.scratch);
                                  Complex* y = x + length;
                                  T* to = run.out<T>(0);
                                  for (Index b = 0; b < batch; ++b)
                                    for (Index f = 0; f < frames; ++f) {
                                      for (Index i = 0; i < length; ++i) {
                                        const T* at = run.in<T>(0) + (b * samples + f * step + i) * parts;
                                        const double weight = windowed ? static_cast<double>(run.in<T>(2)[i]) : 1;
                                        x[i] = weight * Complex(static_cast<double>(at[0]),
                                                                parts == 2 ? static_cast<double>(at[1]) : 0);
                                      }
                                      transform(x, length, y, outputs, length, false);
                                      for (Index k = 0; k < outputs; ++k) {
                                        *to++ = static_cast<T>(y[k].real());
                                        *to++ = static_cast<T>(y[k].imag());
                                      }
                                    }
                                },
                                {.scratch_bytes = room * sizeof(Complex), .not_read = 1U << 1 | 1U << 3});
  });
}

std::unique_ptr<NodeKernel> make_window(const Spec& spec, PackedWeights*) {
  spec.require_inputs(1, 1);
  const Index size = spec.known_integer(0);
  if (size < 1 || size > kLongest) refuse(fmt::format("size {}", size), fmt::format("1 to {}", kLongest));
  const Element element = element_of(static_cast<std::int32_t>(spec.integer("output_datatype", 1)), "output_datatype");
  const bool periodic = spec.integer("periodic", 1) != 0;
  const std::string& op = spec.node.op_type;
  // A sum of cosines: a0 - a1 cos + a2 cos 2.
  const std::array<double, 3> a = op == "HannWindow"      ? std::array<double, 3>{0.5, 0.5, 0}
                                  : op == "HammingWindow" ? std::array<double, 3>{25.0 / 46, 21.0 / 46, 0}
                                                          : std::array<double, 3>{0.42, 0.5, 0.08};
  std::vector<double> values;
  const double turn = 2 * std::numbers::pi / static_cast<double>(std::max<Index>(1, periodic ? size : size - 1));
  for (Index i = 0; i < size; ++i) {
    const double angle = turn * static_cast<double>(i);
    values.push_back(a[0] - a[1] * std::cos(angle) + a[2] * std::cos(2 * angle));
  }
  return make_function_kernel(
      spec, {{element, {size}}},
      [=](const Run& run) { store_elements(element, values.data(), run.outputs[0], values.size()); },
      {.not_read = ~0U});
}

std::unique_ptr<NodeKernel> make_mel_weights(const Spec& spec, PackedWeights*) {
  spec.require_inputs(5, 5);
  const Index bands = known_length(spec, 0, 1), length = known_length(spec, 1, 1);
  const std::vector<double> rate = spec.known_reals(2), low = spec.known_reals(3), high = spec.known_reals(4);
  if (rate.size() != 1 || low.size() != 1 || high.size() != 1 || !(rate[0] > 0))
    refuse("no single numbers", "single ones");
  const Element element = element_of(static_cast<std::int32_t>(spec.integer("output_datatype", 1)), "output_datatype");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double first = mel(low[0]), step = (mel(high[0]) - first) / static_cast<double>(bands + 2);
  std::vector<Index> bins;  // where bands begin, culminate and end
  for (Index i = 0; i < bands + 2; ++i) {
    const double hertz = 700 * (std::pow(10.0, (first + static_cast<double>(i) * step) / 2595) - 1);
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / rate[0]);
    if (std::isnan(bin)) refuse(fmt::format("bounds {} and {}", low[0], high[0]), "frequencies from 0");
    bins.push_back(static_cast<Index>(std::clamp(bin, -1.0, static_cast<double>(kLongest))));
  }
  const Index rows = length / 2 + 1;
  const Shape shape = checked_shape({rows, bands});
  std::vector<double> weights(static_cast<std::size_t>(rows * bands), 0.0);
  for (Index band = 0; band < bands; ++band) {
    const auto at = static_cast<std::size_t>(band);
    const Index begin = bins[at], middle = bins[at + 1], end = bins[at + 2];
    const auto set = [&](Index row, double weight) {
      if (row >= 0 && row < rows) weights[static_cast<std::size_t>(row * bands + band)] = weight;
    };
    if (begin == middle) set(middle, 1);
    for (Index i = begin; i <= middle && begin < middle; ++i)
      set(i, static_cast<double>(i - begin) / static_cast<double>(middle - begin));
    for (Index i = middle; i < end; ++i) set(i, static_cast<double>(end - i) / static_cast<double>(end - middle));
  }
  return make_function_kernel(
      spec, {{element, shape}},
      [=](const Run& run) { store_elements(element, weights.data(), run.outputs[0], weights.size()); },
      {.not_read = ~0U});
}

}  // namespace doppler::model
