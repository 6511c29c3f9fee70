#include "doppler/base/module.h"
#include "doppler/kernels/onnx/kernel.h"

namespace doppler::model {

const KernelLibrary& open_kernel_library() {
  const Module module{"doppler_models", "running ONNX models", "a build by `make`, which has it"};
  using Open = const KernelLibrary* (*)();
  static const KernelLibrary* const library =
      reinterpret_cast<Open>(open_module(module, library_directory(), "doppler_kernel_library"))();
  return *library;
}

}  // namespace doppler::model
