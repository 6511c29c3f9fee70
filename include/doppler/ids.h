#pragma once

#include <cstdint>

namespace doppler {

// Ids are dense indices from 0. Plain aliases, not strong types: every hot loop indexes arrays with them.
using OpId = std::uint32_t;
using TensorId = std::uint32_t;
using DeviceId = std::uint32_t;

}  // namespace doppler
