#pragma once

#include <memory>

#include "doppler/kernels/block_kernel.h"
#include "doppler/kernels/device_memory.h"
#include "doppler/kernels/strided_copy.h"
#include "doppler/kernels/strided_fold.h"

namespace doppler {

// What computes the blocks of a program's ops and has the memory for them: this processor, or libtorch on its devices
// (aten/aten_backend.h). Calls come from the threads of all devices at once, those for one device from one thread at a
// time. What run() and a BlockKernel begin on a device happens in that order, and has ended when finish() returns.
class Backend : public DeviceMemory {
 public:
  virtual std::unique_ptr<BlockKernel> make_einsum(const program::Einsum& einsum, const EinsumBlock& block,
                                                   const program::Variables& variables) const = 0;
  virtual std::unique_ptr<BlockKernel> make_fill(const program::Fill& fill, program::DType dtype,
                                                 const program::Rect& block) const = 0;

  virtual void run(DeviceId device, const StridedCopy& copy, const std::byte* from, std::byte* to) const = 0;
  virtual void run(DeviceId device, const StridedFold& fold, const std::byte* from, std::byte* to,
                   bool first) const = 0;
  virtual void finish(DeviceId) const {}

  // Returns memory for the time of one op; it stays where it is until more is asked for.
  virtual std::byte* scratch(DeviceId device, Bytes bytes) const = 0;
};

// Makes the backend of this processor: oneDNN, OpenBLAS and loops of our own, on the thread that calls. Throws
// std::bad_alloc if there is no room for what so many threads need at the same time.
std::unique_ptr<Backend> make_host_backend(unsigned threads = 1);

}  // namespace doppler
