#pragma once

#include <string>

#include <fmt/format.h>

#include "doppler/errors.h"

namespace doppler {

// Invariants; on in release builds too. DOPPLER_CHECK(cond, "format {}", value)
#define DOPPLER_CHECK(condition, ...)                                                                        \
  do {                                                                                                       \
    if (!(condition)) [[unlikely]]                                                                           \
      throw ::doppler::InternalError(                                                                        \
          fmt::format("{}:{}: {}; required: {}", __FILE__, __LINE__, fmt::format(__VA_ARGS__), #condition)); \
  } while (false)

}  // namespace doppler
