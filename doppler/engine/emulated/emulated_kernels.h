#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "doppler/kernels/kernels.h"
#include "doppler/machine/jitter.h"
#include "doppler/problem/problem.h"

namespace doppler {

// How the times of ops and transfers vary in one run, by the machine's jitter.
JitterDraw draw_of_run(const Problem& problem, std::uint64_t run);

// Sleeps from `begin` on for that long; a while less once `cancelled`.
void let_pass(std::chrono::steady_clock::time_point begin, std::chrono::nanoseconds time,
              const std::atomic<bool>& cancelled);

// Kernels that only let the modelled time pass: any number of devices of any speed on any box, with real asynchrony.
// Times vary by the machine's jitter, drawn anew for every run.
class EmulatedKernels final : public Kernels {
 public:
  // `time_scale` as in EngineOptions.
  EmulatedKernels(const Problem& problem, double time_scale);

  void start() override;
  void cancel() override { cancelled_.store(true, std::memory_order_relaxed); }
  void run(OpId op, DeviceId device, const OpBuffers& buffers) override;

  // From now on the device takes `factor` times as long as modelled; from any thread.
  void slow_down(DeviceId device, double factor) { slowdown_[device].store(factor, std::memory_order_relaxed); }

 private:
  Problem problem_;
  double time_scale_;
  std::uint64_t runs_ = 0;
  std::atomic<bool> cancelled_{false};
  std::unique_ptr<std::atomic<double>[]> slowdown_;  // by device
};

}  // namespace doppler
