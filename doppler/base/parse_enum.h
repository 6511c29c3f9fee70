#pragma once

#include <array>
#include <string>
#include <string_view>

#include "doppler/base/error.h"

namespace doppler {

// The value whose to_string() is `text`. Throws InputError with the names of all.
template <typename Enum, std::size_t N>
Enum parse_enum(std::string_view text, std::string_view where, const std::array<Enum, N>& values) {
  std::string names;
  for (const Enum value : values) {
    if (to_string(value) == text) return value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", to_string(value));
  }
  throw InputError(fmt::format("{}: found '{}'; required one of {}", where, text, names));
}

}  // namespace doppler
