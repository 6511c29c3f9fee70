#include "doppler/kernels/onnx/integer_loops.h"

#include <cmath>
#include <limits>

namespace doppler::model {
namespace {

template <typename T, typename Out, auto Function>
void each_pair(const T* a, const T* b, Out* out, std::size_t n, Scalar scalar) {
  const std::size_t a_step = scalar == Scalar::left ? 0 : 1, b_step = scalar == Scalar::right ? 0 : 1;
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<Out>(Function(a[i * a_step], b[i * b_step]));
}

template <typename T, auto Function>
void each(const T* x, T* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = Function(x[i]);
}

// Integers wrap around as they do in every other runtime, where C++ says that they must not.
using Bits = std::uint64_t;
template <typename T>
T add(T a, T b) {
  return static_cast<T>(static_cast<Bits>(a) + static_cast<Bits>(b));
}
template <typename T>
T subtract(T a, T b) {
  return static_cast<T>(static_cast<Bits>(a) - static_cast<Bits>(b));
}
template <typename T>
T multiply(T a, T b) {
  return static_cast<T>(static_cast<Bits>(a) * static_cast<Bits>(b));
}
template <typename T>
T negate(T x) {
  return static_cast<T>(Bits{0} - static_cast<Bits>(x));
}
// Neither a division by zero nor that of the least number by -1 ends the process; their results are 0 and the dividend.
template <typename T>
T divide(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return negate(a);
  return a / b;
}
template <typename T>
T remainder_truncated(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return a % b;
}
template <typename T>
T remainder_floored(T a, T b) {
  const T rest = remainder_truncated(a, b);
  if constexpr (std::is_signed_v<T>)
    if (rest != 0 && (rest < 0) != (b < 0)) return rest + b;
  return rest;
}
template <typename T>
T power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>)
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  T result = 1;
  for (auto left = static_cast<Bits>(exponent); left > 0; left >>= 1) {
    if ((left & 1) != 0) result = multiply(result, base);
    base = multiply(base, base);
  }
  return result;
}
template <typename T>
T greatest(T a, T b) {
  return a > b ? a : b;
}
template <typename T>
T least(T a, T b) {
  return a < b ? a : b;
}
template <typename T>
T leaky(T a, T b) {
  return a < T{0} ? multiply(a, b) : a;
}
template <typename T>
T absolute(T x) {
  return x < T{0} ? negate(x) : x;
}
template <typename T>
T sign(T x) {
  return static_cast<T>(static_cast<int>(x > T{0}) - static_cast<int>(x < T{0}));
}
template <typename T>
T positive(T x) {
  return x > T{0} ? x : T{0};
}
template <typename T>
T same(T x) {
  return x;
}
template <typename T>
T squared(T x) {
  return multiply(x, x);
}

template <typename T>
bool equal(T a, T b) {
  return a == b;
}
template <typename T>
bool before(T a, T b) {
  return a < b;
}
template <typename T>
bool not_after(T a, T b) {
  return a <= b;
}
template <typename T>
bool after(T a, T b) {
  return a > b;
}
template <typename T>
bool not_before(T a, T b) {
  return a >= b;
}

bool both(std::uint8_t a, std::uint8_t b) { return a != 0 && b != 0; }
bool either(std::uint8_t a, std::uint8_t b) { return a != 0 || b != 0; }
bool one_alone(std::uint8_t a, std::uint8_t b) { return (a != 0) != (b != 0); }
Bits bits_and(Bits a, Bits b) { return a & b; }
Bits bits_or(Bits a, Bits b) { return a | b; }
Bits bits_xor(Bits a, Bits b) { return a ^ b; }
Bits shifted_left(Bits a, Bits b) { return b < 64 ? a << b : 0; }
Bits shifted_right(Bits a, Bits b) { return b < 64 ? a >> b : 0; }

}  // namespace

template <typename T>
IntegerUnary<T> integer_loop(Unary function) {
  switch (function) {
    case Unary::abs:
      return each<T, absolute<T>>;
    case Unary::neg:
      return each<T, negate<T>>;
    case Unary::sign:
      return each<T, sign<T>>;
    case Unary::relu:
      return each<T, positive<T>>;
    case Unary::square:
      return each<T, squared<T>>;
    case Unary::floor:
    case Unary::ceil:
    case Unary::round:
      return each<T, same<T>>;
    default:
      refuse("integers", "floats for this operator");
  }
}

template <typename T>
IntegerBinary<T, T> integer_loop(Binary function) {
  switch (function) {
    case Binary::add:
      return each_pair<T, T, add<T>>;
    case Binary::sub:
      return each_pair<T, T, subtract<T>>;
    case Binary::mul:
      return each_pair<T, T, multiply<T>>;
    case Binary::div:
      return each_pair<T, T, divide<T>>;
    case Binary::pow:
      return each_pair<T, T, power<T>>;
    case Binary::max:
      return each_pair<T, T, greatest<T>>;
    case Binary::min:
      return each_pair<T, T, least<T>>;
    case Binary::prelu:
      return each_pair<T, T, leaky<T>>;
    default:
      refuse("integers", "floats for this operator");
  }
}

template <typename T>
IntegerBinary<T, std::uint8_t> integer_loop(Comparison function) {
  switch (function) {
    case Comparison::equal:
      return each_pair<T, std::uint8_t, equal<T>>;
    case Comparison::less:
      return each_pair<T, std::uint8_t, before<T>>;
    case Comparison::less_or_equal:
      return each_pair<T, std::uint8_t, not_after<T>>;
    case Comparison::greater:
      return each_pair<T, std::uint8_t, after<T>>;
    default:
      return each_pair<T, std::uint8_t, not_before<T>>;
  }
}

template <typename T>
IntegerBinary<T, T> remainder_loop(bool truncated) {
  return truncated ? each_pair<T, T, remainder_truncated<T>> : each_pair<T, T, remainder_floored<T>>;
}

template IntegerUnary<std::int64_t> integer_loop(Unary);
template IntegerUnary<std::uint64_t> integer_loop(Unary);
template IntegerBinary<std::int64_t, std::int64_t> integer_loop(Binary);
template IntegerBinary<std::uint64_t, std::uint64_t> integer_loop(Binary);
template IntegerBinary<std::int64_t, std::uint8_t> integer_loop(Comparison);
template IntegerBinary<std::uint64_t, std::uint8_t> integer_loop(Comparison);
template IntegerBinary<std::int64_t, std::int64_t> remainder_loop(bool);
template IntegerBinary<std::uint64_t, std::uint64_t> remainder_loop(bool);

IntegerBinary<std::uint8_t, std::uint8_t> boolean_loop(Logic function) {
  switch (function) {
    case Logic::logical_and:
      return each_pair<std::uint8_t, std::uint8_t, both>;
    case Logic::logical_or:
      return each_pair<std::uint8_t, std::uint8_t, either>;
    default:
      return each_pair<std::uint8_t, std::uint8_t, one_alone>;
  }
}

IntegerBinary<Bits, Bits> bit_loop(Logic function, bool to_the_right) {
  switch (function) {
    case Logic::bit_and:
      return each_pair<Bits, Bits, bits_and>;
    case Logic::bit_or:
      return each_pair<Bits, Bits, bits_or>;
    case Logic::bit_xor:
      return each_pair<Bits, Bits, bits_xor>;
    default:
      return to_the_right ? each_pair<Bits, Bits, shifted_right> : each_pair<Bits, Bits, shifted_left>;
  }
}

}  // namespace doppler::model
