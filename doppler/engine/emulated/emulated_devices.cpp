#include "doppler/engine/emulated/emulated_devices.h"

#include <algorithm>
#include <cerrno>
#include <time.h>

#include "doppler/base/error.h"
#include "doppler/base/pin_thread.h"
#include "doppler/base/rng.h"
#include "doppler/engine/emulated/emulated_courier.h"
#include "doppler/executor.h"

namespace doppler {
namespace {

// A device that does not answer is waited for so long, in real time, before it is believed to be gone.
constexpr std::chrono::nanoseconds kPatience = std::chrono::milliseconds(100);
// A run that is over may go on sleeping for this long.
constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(20);

void sleep_until(std::chrono::steady_clock::time_point time) {
  const auto since_boot = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  const timespec until{.tv_sec = since_boot / 1'000'000'000, .tv_nsec = since_boot % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace

EmulatedDevices::EmulatedDevices(const Problem& problem, double time_scale)
    : problem_(problem.on(problem.machine().without_emulation())),
      time_scale_(time_scale),
      slowdown_(new std::atomic<double>[problem.device_count()]),
      link_slowdown_(new std::atomic<double>[problem.device_count() * problem.device_count()]),
      gone_(new std::atomic<bool>[problem.device_count()]) {
  for (DeviceId device = 0; device < problem.device_count(); ++device) {
    slow_down(device, 1);
    set_present(device, true);
    for (DeviceId dst = 0; dst < problem.device_count(); ++dst) slow_down(device, dst, 1);
  }
}

void EmulatedDevices::settle(std::optional<DeviceId>) const { sleep_precisely(); }

std::unique_ptr<Courier> EmulatedDevices::make_courier(SharedRun& run, unsigned courier) {
  if (one_courier()) return std::make_unique<LinkCourier>(run, courier, *this);
  return std::make_unique<ReceiverCourier>(run, courier, *this);
}

bool EmulatedDevices::hands_over(const Routes::Transfer& transfer) const {
  return problem_.graph().bytes(transfer.tensor) == 0 &&
         problem_.costs().transfer_time(transfer.tensor, transfer.src, transfer.dst) == 0;
}

Seconds EmulatedDevices::longest_step(const Routes& routes) const {
  const Costs& costs = problem_.costs();
  Seconds longest = 0;
  for (const Routes::Transfer& move : routes.transfers())
    longest = std::max(longest, costs.transfer_time(move.tensor, move.src, move.dst));
  for (OpId op = 0; op < problem_.op_count(); ++op) longest = std::max(longest, costs.op_time(op, routes.device(op)));
  constexpr double kJitterAndSlowdown = 10;
  return kJitterAndSlowdown * longest * time_scale_;
}

std::chrono::nanoseconds EmulatedDevices::transfer_time(const Routes::Transfer& transfer, std::uint32_t id) const {
  const Seconds modelled = problem_.costs().transfer_time(transfer.tensor, transfer.src, transfer.dst);
  const std::size_t link = transfer.src * problem_.device_count() + transfer.dst;
  const double slowdown = link_slowdown_[link].load(std::memory_order_relaxed);
  const double seconds = modelled * time_scale_ * slowdown * draw_.transfer_factor(id);
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

void EmulatedDevices::let_pass(std::chrono::steady_clock::time_point begin, std::chrono::nanoseconds time) const {
  const auto end = begin + time;
  while (!over_.load(std::memory_order_relaxed)) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= end) return;
    sleep_until(std::min(end, now + kSlice));
  }
}

// The draws are others than those of ExpectedObjective, which would otherwise know what comes.
void EmulatedDevices::start() {
  constexpr std::uint64_t kStream = 0x656d756c61746564;  // "emulated"
  over_.store(false, std::memory_order_relaxed);
  draw_ = {problem_.machine().jitter(), mix(mix(problem_.rules().seed, kStream), ++runs_)};
}

void EmulatedDevices::run(OpId op, DeviceId device, const OpBuffers&) {
  const auto begin = std::chrono::steady_clock::now();
  if (!present(device)) {
    let_pass(begin, kPatience);
    throw DeviceGone(device, fmt::format("device '{}': has not answered for {}; required for op '{}'",
                                         problem_.machine().device(device).name,
                                         format_seconds(std::chrono::duration<double>(kPatience).count()),
                                         problem_.graph().name(op)));
  }
  const Seconds modelled = problem_.costs().op_time(op, device) * time_scale_;
  const double seconds =
      modelled * slowdown_[device].load(std::memory_order_relaxed) * draw_.op_factor(problem_.graph(), op);
  if (seconds > 0) let_pass(begin, std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
}

}  // namespace doppler
