#pragma once

#include <string>

#include "doppler/machine.h"

namespace doppler {

// What presets assume of devices and links that nobody measured (docs/machines.md): large matrix products reach this
// share of the data sheet's peak (published figures lie between 0.6 and 0.9), streaming kernels that share of its
// memory bandwidth, a kernel launch takes this long on an idle stream, and times vary by a few per cent.
inline constexpr double kAchievedCompute = 0.7, kAchievedMemory = 0.8, kPresetJitter = 0.05;
inline constexpr Seconds kKernelLaunch = microseconds(5);

// PCIe 4.0 x16: 31.5 GB/s in the standard, about 24 GB/s for large copies.
inline constexpr Link kPcie4{.latency = microseconds(10), .bytes_per_second = gigabytes_per_second(24)};
// Between GPUs on different sockets, staged through host memory.
inline constexpr Link kThroughHost{
    .latency = microseconds(20), .bytes_per_second = gigabytes_per_second(9), .cost_factor = 2};

// "h100:8", "rtx4090:1+rtx3060:1". Throws InputError.
Machine machine_of_kinds(const std::string& name);

}  // namespace doppler
