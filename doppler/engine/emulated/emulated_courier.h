#pragma once

#include "doppler/engine/emulated/emulated_devices.h"
#include "doppler/engine/runtime/courier.h"

namespace doppler {

// The courier of one destination that spends its own time on copies: its worker sleeps as long as each takes. Internal
// to doppler/engine.
class ReceiverCourier final : public Courier {
 public:
  ReceiverCourier(SharedRun& run, unsigned courier, const EmulatedDevices& devices)
      : Courier(run, courier), devices_(devices) {}

 private:
  bool serve() override;

  const EmulatedDevices& devices_;
};

// Lets the time pass that the machine's links take, for all transfers at once. Internal to doppler/engine.
class LinkCourier final : public Courier {
 public:
  LinkCourier(SharedRun& run, unsigned courier, const EmulatedDevices& devices);
  void prepare() override;

 private:
  struct Due {
    Ticks time;
    std::uint32_t id;
    bool operator<(const Due& other) const { return time > other.time; }  // the heap's top is the first
  };
  bool serve() override;
  Ticks next_due() const override { return due_.empty() ? kNever : due_.front().time; }
  void begin(std::uint32_t id);

  const EmulatedDevices& devices_;
  std::vector<Due> due_;                          // a heap of the transfers that have begun
  std::vector<std::vector<Ticks>> channel_free_;  // by src × devices + dst; empty if links are free
};

}  // namespace doppler
