#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "doppler/kernels/backend.h"

namespace doppler {

// A backend for up to three devices that the tests of kernels run on.
struct TestBackend {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
};
inline void PrintTo(const TestBackend& backend, std::ostream* out) { *out << backend.name; }

// Those of the test program.
std::vector<TestBackend> test_backends();

}  // namespace doppler
