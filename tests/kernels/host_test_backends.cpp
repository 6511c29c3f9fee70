#include "tests/kernels/test_backend.h"

namespace doppler {
namespace {

// The host's kernels, with a memory per device that only they can reach: its addresses have bits that no address of
// this processor has, others for each device. Whoever else reads or writes there, or takes a buffer for another
// device's, crashes.
class SeparateMemories final : public Backend {
 public:
  bool on_host() const override { return false; }
  std::byte* allocate(DeviceId device, Bytes bytes) const override {
    return away(device, host_->allocate(device, bytes));
  }
  void free(DeviceId device, std::byte* data) const override { host_->free(device, here(device, data)); }
  void copy(const std::byte* from, Owner src, std::byte* to, Owner dst, Bytes bytes) const override {
    host_->copy(src ? here(*src, from) : from, src, dst ? here(*dst, to) : to, dst, bytes);
  }

  std::unique_ptr<BlockKernel> make_einsum(const program::Einsum& einsum, const EinsumBlock& block,
                                           const program::Variables& variables) const override {
    return std::make_unique<Kernel>(host_->make_einsum(einsum, block, variables));
  }
  std::unique_ptr<BlockKernel> make_fill(const program::Fill& fill, program::DType dtype,
                                         const program::Rect& block) const override {
    return std::make_unique<Kernel>(host_->make_fill(fill, dtype, block));
  }
  void run(DeviceId device, const StridedCopy& copy, const std::byte* from, std::byte* to) const override {
    host_->run(device, copy, here(device, from), here(device, to));
  }
  void run(DeviceId device, const StridedFold& fold, const std::byte* from, std::byte* to, bool first) const override {
    host_->run(device, fold, here(device, from), here(device, to), first);
  }
  std::byte* scratch(DeviceId device, Bytes bytes) const override {
    return away(device, host_->scratch(device, bytes));
  }

 private:
  static std::uintptr_t mark(DeviceId device) { return (std::uintptr_t{device} + 1) << 57; }
  template <typename Byte>
  static Byte* away(DeviceId device, Byte* data) {
    return reinterpret_cast<Byte*>(reinterpret_cast<std::uintptr_t>(data) + mark(device));
  }
  template <typename Byte>
  static Byte* here(DeviceId device, Byte* data) {
    return reinterpret_cast<Byte*>(reinterpret_cast<std::uintptr_t>(data) - mark(device));
  }

  class Kernel final : public BlockKernel {
   public:
    explicit Kernel(std::unique_ptr<BlockKernel> kernel) : kernel_(std::move(kernel)) {}
    std::size_t work_bytes() const override { return kernel_->work_bytes(); }
    void run(DeviceId device, std::span<const std::byte* const> operands, std::byte* output,
             std::byte* work) const override {
      std::vector<const std::byte*> here_operands;
      for (const std::byte* operand : operands) here_operands.push_back(here(device, operand));
      kernel_->run(device, here_operands, here(device, output), here(device, work));
    }

   private:
    std::unique_ptr<BlockKernel> kernel_;
  };

  std::unique_ptr<Backend> host_ = make_host_backend();
};

}  // namespace

std::vector<TestBackend> test_backends() {
  return {{"host", [] { return make_host_backend(); }},
          {"separate", [] { return std::make_unique<SeparateMemories>(); }}};
}

}  // namespace doppler
