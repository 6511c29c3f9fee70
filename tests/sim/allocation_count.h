#pragma once

#include <cstddef>

namespace doppler::test {

// How often this program has called operator new so far.
std::size_t allocation_count();

}  // namespace doppler::test
