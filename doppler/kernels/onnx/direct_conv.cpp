// Convolutions by plain loops over rows: out[i] += weight · x[i · stride] is what the processor's vectors do.

#include <algorithm>
#include <array>

#include "doppler/kernels/onnx/loops.h"
#include "doppler/kernels/onnx/window_loops.h"

namespace doppler::model {
namespace {

template <typename T>
void add_scaled(T* out, const T* x, Index n, T factor, Index step) {
  if constexpr (std::is_floating_point_v<T>)
    float_loops<T>().add_scaled(out, x, static_cast<std::size_t>(n), factor, step);
  else
    for (Index i = 0; i < n; ++i)
      out[i] = static_cast<T>(static_cast<std::uint64_t>(out[i]) +
                              static_cast<std::uint64_t>(factor) * static_cast<std::uint64_t>(x[i * step]));
}

}  // namespace

template <typename T>
void run_direct_conv(const DirectConv& conv, const T* x, const T* weights, const T* bias, T* out) {
  const Window& w = conv.window;
  const Index in_size = program::product(w.in), out_size = program::product(w.out), taps = w.kernel_count();
  const Index ins = conv.in_channels / conv.groups, outs = conv.out_channels / conv.groups;
  for (Index n = 0; n < conv.batch; ++n)
    for (Index o = 0; o < conv.out_channels; ++o) {
      T* to = out + (n * conv.out_channels + o) * out_size;
      std::fill_n(to, out_size, bias != nullptr ? bias[o] : T{});
      for (Index i = 0; i < ins; ++i) {
        const T* from = x + (n * conv.in_channels + o / outs * ins + i) * in_size;
        const T* kernel = weights + (o * ins + i) * taps;
        for_each_tap(w, [&](const auto& tap, Index number) {
          for_each_window_row(w, tap, [&](Index out_at, Index in_at, Index count) {
            add_scaled(to + out_at, from + in_at, count, kernel[number], w.strides.back());
          });
        });
      }
    }
}

template <typename T>
void run_direct_conv_transpose(const DirectConv& conv, const T* x, const T* weights, const T* bias, T* out) {
  // The window slides over the output: what a convolution would read, its transpose writes.
  const Window& w = conv.window;
  const Index big = program::product(w.in), small = program::product(w.out), taps = w.kernel_count();
  const Index ins = conv.in_channels / conv.groups, outs = conv.out_channels / conv.groups;
  for (Index n = 0; n < conv.batch; ++n) {
    for (Index o = 0; o < conv.out_channels; ++o)
      std::fill_n(out + (n * conv.out_channels + o) * big, big, bias != nullptr ? bias[o] : T{});
    for (Index i = 0; i < conv.in_channels; ++i)
      for (Index o = 0; o < outs; ++o) {
        const T* from = x + (n * conv.in_channels + i) * small;
        const T* kernel = weights + (i * outs + o) * taps;
        T* to = out + (n * conv.out_channels + i / ins * outs + o) * big;
        for_each_tap(w, [&](const auto& tap, Index number) {
          for_each_window_row(w, tap, [&](Index from_at, Index to_at, Index count) {
            const Index stride = w.strides.back();
            for (Index c = 0; c < count; ++c) to[to_at + c * stride] += kernel[number] * from[from_at + c];
          });
        });
      }
  }
}

template void run_direct_conv(const DirectConv&, const float*, const float*, const float*, float*);
template void run_direct_conv(const DirectConv&, const double*, const double*, const double*, double*);
template void run_direct_conv_transpose(const DirectConv&, const float*, const float*, const float*, float*);
template void run_direct_conv_transpose(const DirectConv&, const double*, const double*, const double*, double*);

}  // namespace doppler::model
