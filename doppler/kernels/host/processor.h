#pragma once

#include "doppler/units.h"

namespace doppler {

// What the processor can do by its own account. Its name says nothing: libraries that go by names take a processor that
// is newer than they are for an old one.
struct ProcessorFeatures {
  bool avx2 = false;    // and FMA
  bool avx512 = false;  // F, CD, BW, DQ and VL
};
ProcessorFeatures processor_features();

// Returns the processor time of the calling thread, which others that want the same core do not lengthen.
Seconds thread_time();

}  // namespace doppler
