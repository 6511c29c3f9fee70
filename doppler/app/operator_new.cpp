#include <algorithm>
#include <cstdlib>

#include "doppler/base/memory.h"

// The command's own operator new says how much was wanted, which std::bad_alloc does not. Sanitizers have theirs.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

void* checked(void* memory, std::size_t bytes) {
  if (memory == nullptr) throw doppler::OutOfMemory(doppler::memory_in_use() + bytes);
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return checked(std::malloc(std::max<std::size_t>(bytes, 1)), bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto step = static_cast<std::size_t>(alignment);
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + step - 1) / step * step;  // as aligned_alloc demands
  return checked(rounded < bytes ? nullptr : std::aligned_alloc(step, rounded), bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

#endif
