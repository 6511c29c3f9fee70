#pragma once

#include "doppler/engine/runtime/device_kind.h"
#include "doppler/problem.h"

namespace doppler {

// Devices that compute: each worker has a core, if there are enough, and tensors are
// copied from memory to memory, or handed over where the rules say that the devices have one.
// Internal to doppler/engine.
class ThreadDevices final : public DeviceKind {
 public:
  ThreadDevices(const Problem& problem, std::shared_ptr<Kernels> kernels)
      : problem_(problem), kernels_(std::move(kernels)) {}

  Kernels& kernels() override { return *kernels_; }
  void settle(std::optional<DeviceId> device) const override;
  int spins(unsigned threads) const override;
  bool one_courier() const override { return false; }
  std::unique_ptr<Courier> make_courier(SharedRun& run, unsigned courier) override;
  bool hands_over(const Routes::Transfer& transfer) const override;

 private:
  const Problem problem_;
  const std::shared_ptr<Kernels> kernels_;
};

}  // namespace doppler
