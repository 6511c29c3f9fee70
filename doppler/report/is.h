#pragma once

#include <concepts>
#include <type_traits>

namespace doppler {

// A type, constant or not: lists of fields serve writers and readers.
template <typename T, typename Plain>
concept Is = std::same_as<std::remove_const_t<T>, Plain>;

}  // namespace doppler
