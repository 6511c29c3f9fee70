#include "doppler/engine/emulated/emulated_kernels.h"

#include <algorithm>
#include <cerrno>
#include <time.h>

#include "doppler/base/rng.h"

namespace doppler {
namespace {

// How long a cancelled run may go on sleeping.
constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(20);

void sleep_until(std::chrono::steady_clock::time_point time) {
  const auto since_boot = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  const timespec until{.tv_sec = since_boot / 1'000'000'000, .tv_nsec = since_boot % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace

JitterDraw draw_of_run(const Problem& problem, std::uint64_t run) {
  return {problem.machine().jitter(), mix(problem.rules().seed, run)};
}

void let_pass(std::chrono::steady_clock::time_point begin, std::chrono::nanoseconds time,
              const std::atomic<bool>& cancelled) {
  const auto end = begin + time;
  while (!cancelled.load(std::memory_order_relaxed)) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= end) return;
    sleep_until(std::min(end, now + kSlice));
  }
}

EmulatedKernels::EmulatedKernels(const Problem& problem, double time_scale)
    : problem_(problem), time_scale_(time_scale), slowdown_(new std::atomic<double>[problem.device_count()]) {
  for (DeviceId device = 0; device < problem.device_count(); ++device) slow_down(device, 1);
}

void EmulatedKernels::start() {
  cancelled_.store(false, std::memory_order_relaxed);
  ++runs_;
}

void EmulatedKernels::run(OpId op, DeviceId device, const OpBuffers&) {
  const auto begin = std::chrono::steady_clock::now();
  const Seconds modelled = problem_.costs().op_time(op, device) * time_scale_;
  const double seconds =
      modelled * slowdown_[device].load(std::memory_order_relaxed) * draw_of_run(problem_, runs_).factor(op);
  if (seconds <= 0) return;
  let_pass(begin, std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)), cancelled_);
}

}  // namespace doppler
