#pragma once

namespace doppler {

// What one core can do at most: multiplications and additions per second, of numbers that stay in registers.
struct FmaPeak {
  double f32 = 0, f64 = 0;  // FLOP/s
};

// Measures the peak of the core that the caller runs on, with the widest instructions that the processor has. Takes
// some milliseconds of processor time, in bursts of which the best counts: the first ones are slow, because a core
// raises its frequency when it has work and powers its widest units up when they are used.
FmaPeak measure_fma_peak();

}  // namespace doppler
