#pragma once

#include <algorithm>

#include "doppler/sim/sim_tables.h"

namespace doppler {

// When each channel of each link is free. With free links and between devices of one memory a transfer never waits; a receiver that copies is one
// channel for all that comes to it. Internal to doppler/sim.
class ChannelClock {
 public:
  struct Grant {
    std::uint32_t channel;
    Seconds start, end;
  };

  explicit ChannelClock(const SimTables& tables)
      : devices_(tables.device_count()), links_(tables.problem().rules().links) {
    if (are_delays(links_)) return;
    if (links_ == Links::receiver) {
      free_at_.resize(devices_);
      return;
    }
    begin_.push_back(0);
    for (DeviceId src = 0; src < devices_; ++src)
      for (DeviceId dst = 0; dst < devices_; ++dst)
        begin_.push_back(begin_.back() + (src == dst ? 0 : tables.problem().machine().link(src, dst).channels));
    free_at_.resize(begin_.back());
  }
  void clear() { std::fill(free_at_.begin(), free_at_.end(), 0.0); }

  // Takes the channel from src to dst that is free first.
  Grant transfer(DeviceId src, DeviceId dst, Seconds now, Seconds duration) {
    if (are_delays(links_)) return {0, now, now + duration};
    if (links_ == Links::receiver) {
      const Seconds start = std::max(now, free_at_[dst]);
      return {0, start, free_at_[dst] = start + duration};
    }
    const std::size_t link = std::size_t{src} * devices_ + dst;
    const auto first = free_at_.begin() + begin_[link];
    const auto channel = std::min_element(first, free_at_.begin() + begin_[link + 1]);
    const Seconds start = std::max(now, *channel);
    *channel = start + duration;
    return {static_cast<std::uint32_t>(channel - first), start, *channel};
  }

 private:
  DeviceId devices_;
  Links links_;
  std::vector<std::uint32_t> begin_;  // of the channels from src × devices + dst
  std::vector<Seconds> free_at_;      // by channel, or by receiver
};

}  // namespace doppler
