#pragma once

#include <complex>
#include <string_view>
#include <type_traits>

#include "doppler/base/error.h"
#include "doppler/program/expr/shape.h"

namespace doppler {

template <typename T>
inline constexpr bool kIsComplex = !std::is_floating_point_v<T>;

// Calls visit with a value of the type that holds an element of `dtype`. Throws InputError for dtypes that the engine
// does not compute in; `what` says whose it is.
template <typename Visit>
decltype(auto) with_element(std::string_view what, program::DType dtype, Visit&& visit) {
  switch (dtype) {
    case program::DType::f32:
      return visit(float{});
    case program::DType::f64:
      return visit(double{});
    case program::DType::c64:
      return visit(std::complex<float>{});
    case program::DType::c128:
      return visit(std::complex<double>{});
    default:
      throw InputError(fmt::format("{}: found {}; required f32, f64, c64 or c128 to run it (generate … --dtype f32)",
                                   what, program::to_string(dtype)));
  }
}

// std::complex's own product looks for NaN in every result, which takes five times as long.
template <typename T>
T times(T a, T b) {
  if constexpr (kIsComplex<T>)
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  else
    return a * b;
}

// Complex numbers are ordered by their real parts, as in the reference.
template <typename T>
bool less(T a, T b) {
  if constexpr (kIsComplex<T>)
    return a.real() < b.real();
  else
    return a < b;
}

template <typename To, typename From>
To element_cast(From value) {
  if constexpr (kIsComplex<To> && kIsComplex<From>)
    return {static_cast<typename To::value_type>(value.real()), static_cast<typename To::value_type>(value.imag())};
  else if constexpr (kIsComplex<To>)
    return {static_cast<typename To::value_type>(value), 0};
  else if constexpr (kIsComplex<From>)
    return static_cast<To>(value.real());
  else
    return static_cast<To>(value);
}

}  // namespace doppler
