#pragma once

#include "doppler/kernels/backend.h"

namespace doppler {

// libtorch computes, on tensors over the engine's buffers. A join is one libtorch op per instruction, with temporaries
// that libtorch allocates beside the arenas.
enum class AtenDevices : std::uint8_t {
  cpu,   // every device is libtorch's processor: the same code where there is no GPU, for tests
  cuda,  // device i is cuda:i
};
// Makes a backend of libtorch. Throws InputError if there are fewer GPUs than devices.
std::unique_ptr<Backend> make_aten_backend(AtenDevices kind, DeviceId devices);

// What the module doppler_cuda exports: a backend of CUDA devices, which the caller owns.
inline constexpr const char* kMakeCudaBackend = "doppler_make_cuda_backend";
using MakeCudaBackend = Backend* (*)(DeviceId devices);

}  // namespace doppler
