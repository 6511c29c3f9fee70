#pragma once

#include <new>

#include "doppler/units.h"

namespace doppler {

// A std::bad_alloc that knows what the process would have needed.
struct OutOfMemory : std::bad_alloc {
  explicit OutOfMemory(Bytes bytes) : needed(bytes) {}
  const char* what() const noexcept override { return "out of memory"; }
  Bytes needed;
};

// Returns the address space that the process has now.
Bytes memory_in_use();
// Returns the most that it may have: the least of the limits on address space and data, and of what the box has.
Bytes memory_limit();

}  // namespace doppler
