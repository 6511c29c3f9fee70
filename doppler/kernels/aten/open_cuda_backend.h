#pragma once

#include "doppler/kernels/backend.h"

namespace doppler {

// Opens the module doppler_cuda, which loads libtorch, and returns its backend: device i is GPU i. Throws InputError if
// the module is not there, or if there are fewer GPUs than devices.
std::unique_ptr<Backend> open_cuda_backend(DeviceId devices);

}  // namespace doppler
