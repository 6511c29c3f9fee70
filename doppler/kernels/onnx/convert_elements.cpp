#include "doppler/kernels/onnx/convert_elements.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "doppler/base/error.h"
#include "doppler/kernels/onnx/half.h"

namespace doppler::model {
namespace {

struct Boolean {
  std::uint8_t byte;
};

// Converting a number that the integer cannot hold is undefined in C++, so it goes through the widest integer, bounded.
template <typename To, typename From>
To converted(From value) {
  if constexpr (std::is_same_v<To, Boolean>) {
    return {static_cast<std::uint8_t>(value != From{})};
  } else if constexpr (std::is_same_v<To, Float16>) {
    return to_float16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return to_bfloat16(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (std::is_same_v<To, std::uint64_t>) {
      if (value >= From{9223372036854775808.0F})
        return value < From{18446744073709551616.0F} ? static_cast<std::uint64_t>(value)
                                                     : std::numeric_limits<std::uint64_t>::max();
    }
    constexpr From kLimit = From{9223372036854775808.0F};  // 2^63
    const bool fits = value < kLimit && value >= -kLimit;
    return static_cast<To>(fits ? static_cast<std::int64_t>(value) : std::numeric_limits<std::int64_t>::min());
  } else {
    return static_cast<To>(value);
  }
}

template <typename From>
auto plain(From value) {
  if constexpr (std::is_same_v<From, Float16> || std::is_same_v<From, BFloat16>)
    return to_float(value);
  else if constexpr (std::is_same_v<From, Boolean>)
    return static_cast<std::uint8_t>(value.byte != 0);
  else
    return value;
}

template <typename Visit>
void with_stored(Element element, Visit&& visit) {
  switch (element) {
    case Element::f32:
      return visit(float{});
    case Element::f64:
      return visit(double{});
    case Element::f16:
      return visit(Float16{});
    case Element::bf16:
      return visit(BFloat16{});
    case Element::i64:
      return visit(std::int64_t{});
    case Element::i32:
      return visit(std::int32_t{});
    case Element::i16:
      return visit(std::int16_t{});
    case Element::i8:
      return visit(std::int8_t{});
    case Element::u64:
      return visit(std::uint64_t{});
    case Element::u32:
      return visit(std::uint32_t{});
    case Element::u16:
      return visit(std::uint16_t{});
    case Element::u8:
      return visit(std::uint8_t{});
    case Element::boolean:
      return visit(Boolean{});
    case Element::none:
      break;
  }
  throw InternalError("elements: found no type; required one");
}

template <typename C>
void load(Element from, const std::byte* memory, C* out, std::size_t count) {
  with_stored(from, [&](auto tag) {
    using S = decltype(tag);
    const S* values = reinterpret_cast<const S*>(memory);
    for (std::size_t i = 0; i < count; ++i) out[i] = converted<C>(plain(values[i]));
  });
}

template <typename C>
void store(Element to, const C* values, std::byte* memory, std::size_t count) {
  with_stored(to, [&](auto tag) {
    using S = decltype(tag);
    S* out = reinterpret_cast<S*>(memory);
    for (std::size_t i = 0; i < count; ++i) out[i] = converted<S>(values[i]);
  });
}

template <typename C>
void cast_through(Element from, const std::byte* memory, Element to, std::byte* out, std::size_t count) {
  constexpr std::size_t kBlock = 512;
  C block[kBlock];
  for (std::size_t i = 0; i < count; i += kBlock) {
    const std::size_t n = std::min(kBlock, count - i);
    load(from, memory + i * size_of(from), block, n);
    store(to, block, out + i * size_of(to), n);
  }
}

}  // namespace

Element wide_of(Element element) {
  switch (element) {
    case Element::f32:
    case Element::f16:
    case Element::bf16:
      return Element::f32;
    case Element::f64:
      return Element::f64;
    case Element::u64:
      return Element::u64;
    default:
      return Element::i64;
  }
}

void load_elements(Element from, const std::byte* memory, float* out, std::size_t count) {
  load(from, memory, out, count);
}
void load_elements(Element from, const std::byte* memory, double* out, std::size_t count) {
  load(from, memory, out, count);
}
void load_elements(Element from, const std::byte* memory, std::int64_t* out, std::size_t count) {
  load(from, memory, out, count);
}
void load_elements(Element from, const std::byte* memory, std::uint64_t* out, std::size_t count) {
  load(from, memory, out, count);
}
void store_elements(Element to, const float* values, std::byte* memory, std::size_t count) {
  store(to, values, memory, count);
}
void store_elements(Element to, const double* values, std::byte* memory, std::size_t count) {
  store(to, values, memory, count);
}
void store_elements(Element to, const std::int64_t* values, std::byte* memory, std::size_t count) {
  store(to, values, memory, count);
}
void store_elements(Element to, const std::uint64_t* values, std::byte* memory, std::size_t count) {
  store(to, values, memory, count);
}

void cast_elements(Element from, const std::byte* memory, Element to, std::byte* out, std::size_t count) {
  if (count == 0) return;
  if (from == to) {
    std::memcpy(out, memory, count * size_of(from));
    return;
  }
  switch (wide_of(from)) {
    case Element::f32:
      return cast_through<float>(from, memory, to, out, count);
    case Element::f64:
      return cast_through<double>(from, memory, to, out, count);
    case Element::u64:
      return cast_through<std::uint64_t>(from, memory, to, out, count);
    default:
      return cast_through<std::int64_t>(from, memory, to, out, count);
  }
}

}  // namespace doppler::model
