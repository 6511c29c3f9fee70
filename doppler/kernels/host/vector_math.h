#pragma once

#include <cstddef>

namespace doppler {

// Elementary functions of many numbers at once: out[i] = f(x[i]), off by at most 4 units in the last place.
void exp_of(const float* x, float* out, std::size_t count);
void exp_of(const double* x, double* out, std::size_t count);
void log_of(const float* x, float* out, std::size_t count);
void log_of(const double* x, double* out, std::size_t count);
void tanh_of(const float* x, float* out, std::size_t count);
void tanh_of(const double* x, double* out, std::size_t count);

}  // namespace doppler
