#include "doppler/kernels/device_memory.h"

#include <cstring>
#include <new>

namespace doppler {
namespace {
constexpr std::align_val_t kMemoryLine{64};
}

std::byte* DeviceMemory::allocate(DeviceId, Bytes bytes) const {
  return static_cast<std::byte*>(::operator new(bytes, kMemoryLine));
}

void DeviceMemory::free(DeviceId, std::byte* data) const { ::operator delete(data, kMemoryLine); }

void DeviceMemory::copy(const std::byte* from, Owner, std::byte* to, Owner, Bytes bytes) const {
  std::memcpy(to, from, bytes);
}

}  // namespace doppler
