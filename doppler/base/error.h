#pragma once

#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace doppler {

// Texts read "where: found; required[; what to do]", lower case, values quoted.

// The user's file or flag is wrong: exit code 2.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The question is well posed but has no answer, e.g. no placement fits in memory: exit code 3.
struct InfeasibleError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Our bug: exit code 70.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

// Invariants; on in release builds too. DOPPLER_CHECK(cond, "format {}", value)
#define DOPPLER_CHECK(condition, ...)                                                                        \
  do {                                                                                                       \
    if (!(condition)) [[unlikely]]                                                                           \
      throw ::doppler::InternalError(                                                                        \
          fmt::format("{}:{}: {}; required: {}", __FILE__, __LINE__, fmt::format(__VA_ARGS__), #condition)); \
  } while (false)

}  // namespace doppler
