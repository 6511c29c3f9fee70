#include "doppler/kernels/array.h"
#include "doppler/kernels/backend.h"
#include "doppler/kernels/host/blas.h"

namespace doppler {
namespace {

class HostBackend final : public Backend {
 public:
  explicit HostBackend(unsigned threads) { reserve_blas_buffers(threads); }

  std::unique_ptr<BlockKernel> make_einsum(const program::Einsum& einsum, const EinsumBlock& block,
                                           const program::Variables& variables) const override {
    if (auto kernel = make_contraction(einsum, block)) return kernel;
    if (auto kernel = make_permutation(einsum, block)) return kernel;
    return make_join(einsum, block, variables);
  }
  std::unique_ptr<BlockKernel> make_fill(const program::Fill& fill, program::DType dtype,
                                         const program::Rect& block) const override {
    return doppler::make_fill(fill, dtype, block);
  }

  void run(DeviceId, const StridedCopy& copy, const std::byte* from, std::byte* to) const override {
    copy.run(from, to);
  }
  void run(DeviceId, const StridedFold& fold, const std::byte* from, std::byte* to, bool first) const override {
    fold.run(from, to, first);
  }

  // The memory belongs to the calling thread. It only grows, to what the largest op of the program needs, so that a
  // thread allocates once.
  std::byte* scratch(DeviceId, Bytes bytes) const override {
    thread_local AlignedBytes memory;
    if (memory.size() < bytes) memory = AlignedBytes(bytes);
    return memory.data();
  }
};

}  // namespace

std::unique_ptr<Backend> make_host_backend(unsigned threads) { return std::make_unique<HostBackend>(threads); }

}  // namespace doppler
