#include "doppler/kernels/aten/open_cuda_backend.h"

#include "doppler/base/module.h"
#include "doppler/kernels/aten/aten_backend.h"

namespace doppler {

std::unique_ptr<Backend> open_cuda_backend(DeviceId devices) {
  const Module module{"doppler_cuda", "--devices cuda",
                      "a build configured with -DDOPPLER_CUDA=ON and a libtorch with CUDA"};
  const auto make = reinterpret_cast<MakeCudaBackend>(open_module(module, library_directory(), kMakeCudaBackend));
  return std::unique_ptr<Backend>(make(devices));
}

}  // namespace doppler
