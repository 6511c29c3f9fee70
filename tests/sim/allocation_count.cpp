#include "tests/sim/allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::size_t> g_count = 0;
}

void* operator new(std::size_t size) {
  ++g_count;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
// Standard algorithms ask for buffers with this one; all that is freed below must be allocated here.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++g_count;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace doppler::test {

std::size_t allocation_count() { return g_count; }

}  // namespace doppler::test
