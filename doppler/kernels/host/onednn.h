#pragma once

#include <cstdint>

namespace doppler {

// c = a · b of f32 as oneDNN has it: matrices are row-major or, if their letter is 'T' instead of 'N', transposed.
struct Sgemm {
  char transposed_a, transposed_b;
  std::int64_t m, n, k;
  const float* a;
  std::int64_t a_row;
  const float* b;
  std::int64_t b_row;
  float* c;
  std::int64_t c_row;
};

// Loads oneDNN, for whoever wants to know early that it is there. It is loaded once, when something is about to be
// multiplied: it takes memory and time that most verbs have no use for. Throws InputError if it is not installed,
// std::bad_alloc if it does not fit in memory.
void load_onednn();

// Multiplies on the calling thread alone; several may at once. oneDNN generates its loops for the features that the
// processor reports. Throws std::bad_alloc if there is no room to pack the matrices.
void onednn_sgemm(const Sgemm& product);

}  // namespace doppler
