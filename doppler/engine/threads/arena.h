#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "doppler/base/units.h"
#include "doppler/kernels/device_memory.h"

namespace doppler {

// The memory of one device: a capacity that is never exceeded, and buffers of a few dozen sizes that are used again, so
// that a run allocates nothing once the buffers exist. Its worker and its courier share it, so it has a lock of its
// own.
class Arena {
 public:
  // `capacity` 0: unlimited. Without `memory` it only counts: emulated devices have none of their own.
  Arena(DeviceId device, Bytes capacity, const DeviceMemory* memory)
      : device_(device), capacity_(capacity), memory_(memory) {}

  // Takes that much of the capacity. False: it does not fit now.
  bool reserve(Bytes bytes);
  // A buffer within what was reserved; null for no bytes, or if the memory is only counted.
  std::byte* take(Bytes bytes);
  // True: somebody did not get what he wanted since the last time this was true.
  bool release(std::byte* data, Bytes bytes);

  // Forgets all buffers in use, after a run that failed, and takes `bytes` for parameters. False: they do not fit.
  bool start(Bytes parameters);

  Bytes capacity() const { return capacity_; }
  Bytes used() const { return used_.load(std::memory_order_relaxed); }
  Bytes peak() const { return peak_; }
  // Grows with every release: whoever waits for memory tries again when it has changed.
  std::uint64_t releases() const { return releases_.load(std::memory_order_seq_cst); }

 private:
  // Four sizes per power of two, at least one cache line: at most a quarter is wasted.
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
  const DeviceMemory* memory_;
  std::mutex mutex_;
  std::array<std::vector<std::byte*>, 256> free_;      // by size class
  std::vector<std::pair<Block, std::size_t>> blocks_;  // all there are, with their class
  std::atomic<Bytes> used_{0};
  Bytes peak_ = 0;
  bool wanted_ = false;  // a reservation has failed
  std::atomic<std::uint64_t> releases_{0};
};

}  // namespace doppler
