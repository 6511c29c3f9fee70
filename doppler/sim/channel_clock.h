#pragma once

#include <algorithm>

#include "doppler/sim/sim_tables.h"

namespace doppler {

// When each channel of each link is free. With free links a transfer never waits. Internal to doppler/sim.
class ChannelClock {
 public:
  struct Grant {
    std::uint32_t channel;
    Seconds start, end;
  };

  explicit ChannelClock(const SimTables& tables) : devices_(tables.device_count()) {
    if (tables.problem().rules().links == Links::free) return;
    begin_.push_back(0);
    for (DeviceId src = 0; src < devices_; ++src)
      for (DeviceId dst = 0; dst < devices_; ++dst)
        begin_.push_back(begin_.back() +
                         (src == dst ? 0 : tables.problem().machine().link(src, dst).channels));
    free_at_.resize(begin_.back());
  }
  bool limited() const { return !begin_.empty(); }
  void clear() { std::fill(free_at_.begin(), free_at_.end(), 0.0); }

  // Takes the channel from src to dst that is free first.
  Grant transfer(DeviceId src, DeviceId dst, Seconds now, Seconds duration) {
    if (!limited()) return {0, now, now + duration};
    const std::size_t link = std::size_t{src} * devices_ + dst;
    const auto first = free_at_.begin() + begin_[link];
    const auto channel = std::min_element(first, free_at_.begin() + begin_[link + 1]);
    const Seconds start = std::max(now, *channel);
    *channel = start + duration;
    return {static_cast<std::uint32_t>(channel - first), start, *channel};
  }

 private:
  DeviceId devices_;
  std::vector<std::uint32_t> begin_;  // by src × devices + dst; empty: free links
  std::vector<Seconds> free_at_;
};

}  // namespace doppler
