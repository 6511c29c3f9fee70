#include "doppler/engine/threads/thread_devices.h"

#include "doppler/base/pin_thread.h"
#include "doppler/engine/runtime/courier.h"

namespace doppler {
namespace {

// A worker copies tensors up to this size itself: waking a courier takes longer.
constexpr Bytes kDirectBytes = 4096;
// An idle worker looks for mail for some 20 µs, which is what a wake-up takes, before it sleeps; for some 5 ms if
// nobody else wants its core, because a virtual core that has gone to sleep takes long to wake up.
constexpr int kSpins = 1000, kSpinsOnOwnCore = 250'000;

}  // namespace

void ThreadDevices::settle(std::optional<DeviceId> device) const {
  if (device) pin_thread(*device);
}

int ThreadDevices::spins(unsigned threads) const { return threads <= usable_cores() ? kSpinsOnOwnCore : kSpins; }

std::unique_ptr<Courier> ThreadDevices::make_courier(SharedRun& run, unsigned courier) {
  return std::make_unique<CopyCourier>(run, courier);
}

bool ThreadDevices::hands_over(const Routes::Transfer& transfer) const {
  return problem_.rules().links == Links::shared || problem_.graph().bytes(transfer.tensor) <= kDirectBytes;
}

}  // namespace doppler
