#pragma once

#include <cstddef>
#include <optional>

#include "doppler/ids.h"
#include "doppler/units.h"

namespace doppler {

// Where devices keep their buffers. This one is the host's memory, in which every device has buffers of its own;
// kernels that compute elsewhere bring another. Any thread may call it.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // Whether this processor can read and write the buffers.
  virtual bool on_host() const { return true; }
  // Returns a buffer on the boundary of a cache line.
  virtual std::byte* allocate(DeviceId device, Bytes bytes) const;
  virtual void free(DeviceId device, std::byte* data) const;
  // Returns when the bytes are there. No device stands for memory of this processor.
  using Owner = std::optional<DeviceId>;
  virtual void copy(const std::byte* from, Owner src, std::byte* to, Owner dst, Bytes bytes) const;
};

}  // namespace doppler
