// The entry of the module doppler_cuda, which brings its own copy of what it uses of ours.

#include "doppler/kernels/aten/aten_backend.h"

extern "C" doppler::Backend* doppler_make_cuda_backend(doppler::DeviceId devices) {
  return doppler::make_aten_backend(doppler::AtenDevices::cuda, devices).release();
}
