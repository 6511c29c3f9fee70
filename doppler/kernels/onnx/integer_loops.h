#pragma once

#include "doppler/kernels/onnx/elementwise.h"

// The innermost loops on integers, which are there for shapes, indices and masks. T is std::int64_t or std::uint64_t.

namespace doppler::model {

template <typename T>
using IntegerUnary = void (*)(const T* x, T* out, std::size_t n);
template <typename T, typename Out>
using IntegerBinary = void (*)(const T* a, const T* b, Out* out, std::size_t n, Scalar scalar);

// These throw InputError if the function is not one of integers.
template <typename T>
IntegerUnary<T> integer_loop(Unary function);
template <typename T>
IntegerBinary<T, T> integer_loop(Binary function);
template <typename T>
IntegerBinary<T, std::uint8_t> integer_loop(Comparison function);
// The remainder has the sign of the divisor, or of the dividend if `truncated`; that of a division by zero is zero.
template <typename T>
IntegerBinary<T, T> remainder_loop(bool truncated);

IntegerBinary<std::uint8_t, std::uint8_t> boolean_loop(Logic function);
IntegerBinary<std::uint64_t, std::uint64_t> bit_loop(Logic function, bool to_the_right);

}  // namespace doppler::model
