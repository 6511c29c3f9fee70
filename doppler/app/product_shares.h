#pragma once

#include <vector>

#include "doppler/results.h"

namespace doppler {

// Measures how fast products are on one core of this box, and warns, unless `quiet`, of those below half of its peak.
std::vector<ProductShare> product_shares(bool quiet);

}  // namespace doppler
