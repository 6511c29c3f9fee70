#pragma once

#include <cstddef>
#include <cstdint>

// The innermost loops on floats, compiled for several widths of vectors (CMakeLists.txt); the processor decides.
// Nothing of the standard library is in here or in loops.cpp: the linker would keep one copy of a template for all
// processors.

namespace doppler::model {

// p and q are parameters: alpha and beta, bounds, thresholds.
enum class Unary : std::uint8_t {
  abs,
  neg,
  floor,
  ceil,
  round,
  sqrt,
  reciprocal,
  exp,
  log,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  tanh,
  asinh,
  acosh,
  atanh,
  erf,
  sign,
  relu,
  sigmoid,
  softplus,
  softsign,
  elu,
  selu,
  celu,
  leaky_relu,
  thresholded_relu,
  hard_sigmoid,
  hard_swish,
  shrink,
  gelu,
  gelu_tanh,
  silu,
  mish,
  clip,
  linear,
  square,
  count
};
enum class Binary : std::uint8_t { add, sub, mul, div, pow, max, min, fmod, prelu, count };
enum class Comparison : std::uint8_t { equal, less, less_or_equal, greater, greater_or_equal, count };

// Which of two operands is one number that meets every element of the other.
enum class Scalar : std::uint8_t { none, left, right };

template <typename T>
struct FloatLoops {
  void (*unary[static_cast<std::size_t>(Unary::count)])(const T* x, T* out, std::size_t n, T p, T q);
  void (*binary[static_cast<std::size_t>(Binary::count)])(const T* a, const T* b, T* out, std::size_t n, Scalar scalar);
  void (*comparison[static_cast<std::size_t>(Comparison::count)])(const T* a, const T* b, std::uint8_t* out,
                                                                  std::size_t n, Scalar scalar);

  T (*sum)(const T* x, std::size_t n);
  T (*sum_of_squares)(const T* x, std::size_t n);
  T (*sum_of_deviations)(const T* x, std::size_t n, T mean);  // their squares
  T (*max)(const T* x, std::size_t n);
  // out[i] = exp(scale · x[i] - shift); returns their sum. In place too.
  T (*exp_and_sum)(const T* x, T* out, std::size_t n, T scale, T shift);
  // out[i] = (x[i] - mean) · factor · scale[i] + bias[i]; scale and bias may be null.
  void (*normalize)(const T* x, T* out, std::size_t n, T mean, T factor, const T* scale, const T* bias);
  // out[i] = x[i] · scale + shift
  void (*scale_and_shift)(const T* x, T* out, std::size_t n, T scale, T shift);
  // out[i] = x[i] · scale[i] + shift[i]
  void (*scale_and_shift_each)(const T* x, T* out, std::size_t n, const T* scale, const T* shift);
  // out[i] += factor · x[i · step]
  void (*add_scaled)(T* out, const T* x, std::size_t n, T factor, std::ptrdiff_t step);
  // out[i] = max(out[i], x[i · step])
  void (*max_into)(T* out, const T* x, std::size_t n, std::ptrdiff_t step);
};

template <typename T>
const FloatLoops<T>& float_loops();
template <>
const FloatLoops<float>& float_loops<float>();
template <>
const FloatLoops<double>& float_loops<double>();

}  // namespace doppler::model
