#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "doppler/kernels/device_memory.h"
#include "doppler/units.h"

namespace doppler {

// The memory of one device: a capacity that is never exceeded, and buffers of a few dozen sizes that are used again, so
// that a run allocates nothing once the buffers exist. Its worker and its courier share it, so it has a lock of its
// own. Internal to doppler/engine.
class Arena {
 public:
  // A capacity of 0 is unlimited.
  Arena(DeviceId device, Bytes capacity, const DeviceMemory& memory)
      : device_(device), capacity_(capacity), memory_(memory) {}

  // Takes that much of the capacity, or returns false if it does not fit now.
  bool reserve(Bytes bytes);
  // Returns a buffer within what was reserved, or null for no bytes.
  std::byte* take(Bytes bytes);
  // Gives a buffer back. Returns whether a reservation has failed since this last returned true.
  bool release(std::byte* data, Bytes bytes);

  // Takes back all buffers, also those that a failed run left in use, and reserves `parameters` bytes. Returns false if
  // they do not fit.
  bool start(Bytes parameters);

  Bytes capacity() const { return capacity_; }
  Bytes used() const { return used_.load(std::memory_order_relaxed); }
  Bytes peak() const { return peak_; }
  // Grows with every release: whoever waits for memory tries again when it has changed.
  std::uint64_t releases() const { return releases_.load(std::memory_order_seq_cst); }

 private:
  // There are four sizes per power of two, from one cache line on: at most a quarter is wasted.
  static std::size_t size_class(Bytes bytes);
  static Bytes class_bytes(std::size_t size_class);
  struct Free {
    const DeviceMemory* memory;
    DeviceId device;
    void operator()(std::byte* data) const { memory->free(device, data); }
  };
  using Block = std::unique_ptr<std::byte, Free>;

  DeviceId device_;
  Bytes capacity_;
  const DeviceMemory& memory_;
  std::mutex mutex_;
  std::array<std::vector<std::byte*>, 256> free_;      // by size class
  std::vector<std::pair<Block, std::size_t>> blocks_;  // all that were ever allocated, with their size class
  std::atomic<Bytes> used_{0};
  Bytes peak_ = 0;
  bool wanted_ = false;  // a reservation has failed
  std::atomic<std::uint64_t> releases_{0};
};

}  // namespace doppler
