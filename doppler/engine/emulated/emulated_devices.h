#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "doppler/engine/runtime/device_kind.h"
#include "doppler/machine/jitter.h"
#include "doppler/problem.h"

namespace doppler {

// A memory without bytes: buffers are null, and only their sizes count.
class CountedMemory final : public DeviceMemory {
 public:
  std::byte* allocate(DeviceId, Bytes) const override { return nullptr; }
  void free(DeviceId, std::byte*) const override {}
  void copy(const std::byte*, Owner, std::byte*, Owner, Bytes) const override {}
};

// Devices that let the modelled time of ops and transfers pass. Internal to doppler/engine.
class EmulatedDevices final : public DeviceKind, private Kernels {
 public:
  EmulatedDevices(const Problem& problem, double time_scale);

  Kernels& kernels() override { return *this; }
  // Threads that share cores must get up on time, and do not look for work in circles.
  void settle(std::optional<DeviceId> device) const override;
  int spins(unsigned) const override { return 0; }
  // Waiting can be done for many transfers at once, unless receivers spend their own time on them.
  bool one_courier() const override { return problem_.rules().links != Links::receiver; }
  std::unique_ptr<Courier> make_courier(SharedRun& run, unsigned courier) override;
  bool hands_over(const Routes::Transfer& transfer) const override;
  double time_scale() const override { return time_scale_; }
  Seconds longest_step(const Routes& routes) const override;

  // Returns how long transfer number `id` takes in this run.
  std::chrono::nanoseconds transfer_time(const Routes::Transfer& transfer, std::uint32_t id) const;
  // Sleeps from `begin` on for that long, or ends early when the run is over.
  void let_pass(std::chrono::steady_clock::time_point begin, std::chrono::nanoseconds time) const;

  // As ChangeableDevices has them.
  void slow_down(DeviceId device, double factor) { slowdown_[device].store(factor, std::memory_order_relaxed); }
  void slow_down(DeviceId src, DeviceId dst, double factor) {
    link_slowdown_[src * problem_.device_count() + dst].store(factor, std::memory_order_relaxed);
  }
  void set_present(DeviceId device, bool present) { gone_[device].store(!present, std::memory_order_relaxed); }
  bool present(DeviceId device) const { return !gone_[device].load(std::memory_order_relaxed); }

 private:
  const DeviceMemory& memory() const override { return memory_; }
  void start() override;
  void cancel() override { over_.store(true, std::memory_order_relaxed); }
  void run(OpId op, DeviceId device, const OpBuffers& buffers) override;

  const Problem problem_;  // without what the emulation adds by itself
  const double time_scale_;
  const CountedMemory memory_;
  std::uint64_t runs_ = 0;
  JitterDraw draw_;  // how times vary in this run
  std::atomic<bool> over_{false};
  std::unique_ptr<std::atomic<double>[]> slowdown_;       // by device
  std::unique_ptr<std::atomic<double>[]> link_slowdown_;  // by src × devices + dst
  std::unique_ptr<std::atomic<bool>[]> gone_;             // by device
};

}  // namespace doppler
