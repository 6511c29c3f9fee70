#pragma once

#include <vector>

#include "doppler/program/expr/program.h"

namespace doppler {

// How fast the matrix products of the host backend are on one core, beside what the core can do.
struct ProductSpeed {
  program::DType dtype;
  double peak = 0;      // FLOP/s of measure_fma_peak()
  double products = 0;  // FLOP/s of a product of square matrices
};

// Measures f32 and f64 on the core that the caller runs on, by processor time, the best of a few products each. Takes
// about 0.1 s, and loads the libraries that multiply.
std::vector<ProductSpeed> measure_products();

}  // namespace doppler
