// Compiled once per width of vectors, with DOPPLER_LOOPS the name of the namespace that this copy goes to.

#include "doppler/kernels/onnx/loops.h"

// glibc has vector versions of these functions but shows them to the compiler only under -ffast-math, which would
// change the meaning of NaN and infinity. Declared so, and without <cmath>, the loops below use them.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define DOPPLER_VECTOR __attribute__((simd("notinbranch"), const))
#else
#define DOPPLER_VECTOR
#endif
#define DOPPLER_DECLARE(name)                  \
  DOPPLER_VECTOR double name(double) noexcept; \
  DOPPLER_VECTOR float name##f(float) noexcept;
extern "C" {
DOPPLER_DECLARE(exp)
DOPPLER_DECLARE(log)
DOPPLER_DECLARE(log1p)
DOPPLER_DECLARE(sin)
DOPPLER_DECLARE(cos)
DOPPLER_DECLARE(tan)
DOPPLER_DECLARE(asin)
DOPPLER_DECLARE(acos)
DOPPLER_DECLARE(atan)
DOPPLER_DECLARE(sinh)
DOPPLER_DECLARE(cosh)
DOPPLER_DECLARE(tanh)
DOPPLER_DECLARE(asinh)
DOPPLER_DECLARE(acosh)
DOPPLER_DECLARE(atanh)
DOPPLER_DECLARE(erf)
DOPPLER_VECTOR double pow(double, double) noexcept;
DOPPLER_VECTOR float powf(float, float) noexcept;
double fmod(double, double) noexcept;
float fmodf(float, float) noexcept;
}

namespace doppler::model::DOPPLER_LOOPS {
namespace {

#define DOPPLER_FUNCTION(name)                             \
  inline float of_##name(float x) { return ::name##f(x); } \
  inline double of_##name(double x) { return ::name(x); }
DOPPLER_FUNCTION(exp)
DOPPLER_FUNCTION(log)
DOPPLER_FUNCTION(log1p)
DOPPLER_FUNCTION(sin)
DOPPLER_FUNCTION(cos)
DOPPLER_FUNCTION(tan)
DOPPLER_FUNCTION(asin)
DOPPLER_FUNCTION(acos)
DOPPLER_FUNCTION(atan)
DOPPLER_FUNCTION(sinh)
DOPPLER_FUNCTION(cosh)
DOPPLER_FUNCTION(tanh)
DOPPLER_FUNCTION(asinh)
DOPPLER_FUNCTION(acosh)
DOPPLER_FUNCTION(atanh)
DOPPLER_FUNCTION(erf)
inline float of_pow(float x, float y) { return ::powf(x, y); }
inline double of_pow(double x, double y) { return ::pow(x, y); }
inline float of_fmod(float x, float y) { return ::fmodf(x, y); }
inline double of_fmod(double x, double y) { return ::fmod(x, y); }
inline float of_sqrt(float x) { return __builtin_sqrtf(x); }
inline double of_sqrt(double x) { return __builtin_sqrt(x); }
inline float of_floor(float x) { return __builtin_floorf(x); }
inline double of_floor(double x) { return __builtin_floor(x); }
inline float of_ceil(float x) { return __builtin_ceilf(x); }
inline double of_ceil(double x) { return __builtin_ceil(x); }
inline float of_round(float x) { return __builtin_nearbyintf(x); }
inline double of_round(double x) { return __builtin_nearbyint(x); }
template <typename T>
inline T of_abs(T x) {
  return x < 0 ? -x : x == 0 ? T(0) : x;
}
template <typename T>
inline T larger(T a, T b) {  // NaN stays
  return a > b || a != a ? a : b;
}
template <typename T>
inline T smaller(T a, T b) {
  return a < b || a != a ? a : b;
}

// A function of one element as a type, for the loop below. None of them branches around a call: that would keep the
// vector versions out.
#define DOPPLER_UNARY(name, expression)                                   \
  struct name {                                                           \
    template <typename T>                                                 \
    static inline T of(T x, [[maybe_unused]] T p, [[maybe_unused]] T q) { \
      return expression;                                                  \
    }                                                                     \
  };
DOPPLER_UNARY(Abs, of_abs(x))
DOPPLER_UNARY(Neg, -x)
DOPPLER_UNARY(Floor, of_floor(x))
DOPPLER_UNARY(Ceil, of_ceil(x))
DOPPLER_UNARY(Round, of_round(x))
DOPPLER_UNARY(Sqrt, of_sqrt(x))
DOPPLER_UNARY(Reciprocal, T(1) / x)
DOPPLER_UNARY(Exp, of_exp(x))
DOPPLER_UNARY(Log, of_log(x))
DOPPLER_UNARY(Sin, of_sin(x))
DOPPLER_UNARY(Cos, of_cos(x))
DOPPLER_UNARY(Tan, of_tan(x))
DOPPLER_UNARY(Asin, of_asin(x))
DOPPLER_UNARY(Acos, of_acos(x))
DOPPLER_UNARY(Atan, of_atan(x))
DOPPLER_UNARY(Sinh, of_sinh(x))
DOPPLER_UNARY(Cosh, of_cosh(x))
DOPPLER_UNARY(Tanh, of_tanh(x))
DOPPLER_UNARY(Asinh, of_asinh(x))
DOPPLER_UNARY(Acosh, of_acosh(x))
DOPPLER_UNARY(Atanh, of_atanh(x))
DOPPLER_UNARY(Erf, of_erf(x))
DOPPLER_UNARY(Sign, T(x > 0) - T(x < 0))
DOPPLER_UNARY(Relu, larger(x, T(0)))
DOPPLER_UNARY(Sigmoid, T(1) / (T(1) + of_exp(-x)))
DOPPLER_UNARY(Softplus, larger(x, T(0)) + of_log1p(of_exp(-of_abs(x))))
DOPPLER_UNARY(Softsign, x / (T(1) + of_abs(x)))
DOPPLER_UNARY(Elu, larger(x, T(0)) + p * (of_exp(smaller(x, T(0))) - T(1)))
DOPPLER_UNARY(Selu, q*(larger(x, T(0)) + p * (of_exp(smaller(x, T(0))) - T(1))))
DOPPLER_UNARY(Celu, larger(x, T(0)) + p * (of_exp(smaller(x, T(0)) / p) - T(1)))
DOPPLER_UNARY(LeakyRelu, x < 0 ? p * x : x)
DOPPLER_UNARY(ThresholdedRelu, x > p ? x : T(0))
DOPPLER_UNARY(HardSigmoid, smaller(larger(p* x + q, T(0)), T(1)))
DOPPLER_UNARY(HardSwish, x* smaller(larger(x* T(1.0 / 6) + T(0.5), T(0)), T(1)))
DOPPLER_UNARY(Shrink, x<-p ? x + q : x> p ? x - q : T(0))
DOPPLER_UNARY(Gelu, T(0.5) * x * (T(1) + of_erf(x * T(0.70710678118654752440))))
DOPPLER_UNARY(GeluTanh, T(0.5) * x * (T(1) + of_tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x))))
DOPPLER_UNARY(Silu, x / (T(1) + of_exp(-p * x)))
DOPPLER_UNARY(Mish, x* of_tanh(larger(x, T(0)) + of_log1p(of_exp(-of_abs(x)))))
DOPPLER_UNARY(Clip, smaller(larger(x, p), q))
DOPPLER_UNARY(Linear, p* x + q)
DOPPLER_UNARY(Square, x* x)

template <typename F, typename T>
void unary_loop(const T* x, T* out, std::size_t n, T p, T q) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) out[i] = F::of(x[i], p, q);
}

#define DOPPLER_BINARY(name, expression) \
  struct name {                          \
    template <typename T>                \
    static inline auto of(T a, T b) {    \
      return expression;                 \
    }                                    \
  };
DOPPLER_BINARY(Add, a + b)
DOPPLER_BINARY(Sub, a - b)
DOPPLER_BINARY(Mul, a* b)
DOPPLER_BINARY(Div, a / b)
DOPPLER_BINARY(Pow, of_pow(a, b))
DOPPLER_BINARY(Max, larger(a, b))
DOPPLER_BINARY(Min, smaller(a, b))
DOPPLER_BINARY(Fmod, of_fmod(a, b))
DOPPLER_BINARY(Prelu, a < 0 ? a * b : a)
DOPPLER_BINARY(Equal, static_cast<std::uint8_t>(a == b))
DOPPLER_BINARY(Less, static_cast<std::uint8_t>(a < b))
DOPPLER_BINARY(LessOrEqual, static_cast<std::uint8_t>(a <= b))
DOPPLER_BINARY(Greater, static_cast<std::uint8_t>(a > b))
DOPPLER_BINARY(GreaterOrEqual, static_cast<std::uint8_t>(a >= b))

template <typename F, typename T, typename Out>
void binary_loop(const T* a, const T* b, Out* out, std::size_t n, Scalar scalar) {
  if (scalar == Scalar::none) {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) out[i] = F::of(a[i], b[i]);
  } else if (scalar == Scalar::left) {
    const T left = a[0];
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) out[i] = F::of(left, b[i]);
  } else {
    const T right = b[0];
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) out[i] = F::of(a[i], right);
  }
}

template <typename T>
T sum(const T* x, std::size_t n) {
  T total = 0;
#pragma omp simd reduction(+ : total)
  for (std::size_t i = 0; i < n; ++i) total += x[i];
  return total;
}

template <typename T>
T sum_of_squares(const T* x, std::size_t n) {
  T total = 0;
#pragma omp simd reduction(+ : total)
  for (std::size_t i = 0; i < n; ++i) total += x[i] * x[i];
  return total;
}

template <typename T>
T sum_of_deviations(const T* x, std::size_t n, T mean) {
  T total = 0;
#pragma omp simd reduction(+ : total)
  for (std::size_t i = 0; i < n; ++i) total += (x[i] - mean) * (x[i] - mean);
  return total;
}

template <typename T>
T largest(const T* x, std::size_t n) {
  T found = x[0];
#pragma omp simd reduction(max : found)
  for (std::size_t i = 0; i < n; ++i) found = x[i] > found ? x[i] : found;
  return found;
}

template <typename T>
T exp_and_sum(const T* x, T* out, std::size_t n, T scale, T shift) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) out[i] = of_exp(scale * x[i] - shift);
  return sum(out, n);
}

template <typename T>
void normalize(const T* x, T* out, std::size_t n, T mean, T factor, const T* scale, const T* bias) {
  if (scale != nullptr && bias != nullptr) {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * factor * scale[i] + bias[i];
  } else if (scale != nullptr) {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * factor * scale[i];
  } else {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * factor;
  }
}

template <typename T>
void scale_and_shift(const T* x, T* out, std::size_t n, T scale, T shift) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) out[i] = x[i] * scale + shift;
}

template <typename T>
void scale_and_shift_each(const T* x, T* out, std::size_t n, const T* scale, const T* shift) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) out[i] = x[i] * scale[i] + shift[i];
}

template <typename T>
void add_scaled(T* out, const T* x, std::size_t n, T factor, std::ptrdiff_t step) {
  if (step == 1) {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) out[i] += factor * x[i];
  } else {
    for (std::size_t i = 0; i < n; ++i) out[i] += factor * x[static_cast<std::ptrdiff_t>(i) * step];
  }
}

template <typename T>
void max_into(T* out, const T* x, std::size_t n, std::ptrdiff_t step) {
  if (step == 1) {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) out[i] = larger(x[i], out[i]);
  } else {
    for (std::size_t i = 0; i < n; ++i) out[i] = larger(x[static_cast<std::ptrdiff_t>(i) * step], out[i]);
  }
}

template <typename T>
constexpr FloatLoops<T> kLoops = {
    // In the order of the enumerations.
    {unary_loop<Abs, T>,         unary_loop<Neg, T>,       unary_loop<Floor, T>,      unary_loop<Ceil, T>,
     unary_loop<Round, T>,       unary_loop<Sqrt, T>,      unary_loop<Reciprocal, T>, unary_loop<Exp, T>,
     unary_loop<Log, T>,         unary_loop<Sin, T>,       unary_loop<Cos, T>,        unary_loop<Tan, T>,
     unary_loop<Asin, T>,        unary_loop<Acos, T>,      unary_loop<Atan, T>,       unary_loop<Sinh, T>,
     unary_loop<Cosh, T>,        unary_loop<Tanh, T>,      unary_loop<Asinh, T>,      unary_loop<Acosh, T>,
     unary_loop<Atanh, T>,       unary_loop<Erf, T>,       unary_loop<Sign, T>,       unary_loop<Relu, T>,
     unary_loop<Sigmoid, T>,     unary_loop<Softplus, T>,  unary_loop<Softsign, T>,   unary_loop<Elu, T>,
     unary_loop<Selu, T>,        unary_loop<Celu, T>,      unary_loop<LeakyRelu, T>,  unary_loop<ThresholdedRelu, T>,
     unary_loop<HardSigmoid, T>, unary_loop<HardSwish, T>, unary_loop<Shrink, T>,     unary_loop<Gelu, T>,
     unary_loop<GeluTanh, T>,    unary_loop<Silu, T>,      unary_loop<Mish, T>,       unary_loop<Clip, T>,
     unary_loop<Linear, T>,      unary_loop<Square, T>},
    {binary_loop<Add, T, T>, binary_loop<Sub, T, T>, binary_loop<Mul, T, T>, binary_loop<Div, T, T>,
     binary_loop<Pow, T, T>, binary_loop<Max, T, T>, binary_loop<Min, T, T>, binary_loop<Fmod, T, T>,
     binary_loop<Prelu, T, T>},
    {binary_loop<Equal, T, std::uint8_t>, binary_loop<Less, T, std::uint8_t>, binary_loop<LessOrEqual, T, std::uint8_t>,
     binary_loop<Greater, T, std::uint8_t>, binary_loop<GreaterOrEqual, T, std::uint8_t>},
    sum<T>,
    sum_of_squares<T>,
    sum_of_deviations<T>,
    largest<T>,
    exp_and_sum<T>,
    normalize<T>,
    scale_and_shift<T>,
    scale_and_shift_each<T>,
    add_scaled<T>,
    max_into<T>};

}  // namespace

const FloatLoops<float>& loops_of_float() { return kLoops<float>; }
const FloatLoops<double>& loops_of_double() { return kLoops<double>; }

}  // namespace doppler::model::DOPPLER_LOOPS
