#pragma once

#include <cblas.h>

namespace doppler {

// The functions that we call of a BLAS.
struct Blas {
  decltype(&::cblas_dgemm) dgemm;
  decltype(&::cblas_cgemm) cgemm;
  decltype(&::cblas_zgemm) zgemm;
  decltype(&::cblas_sgemv) sgemv;
  decltype(&::cblas_dgemv) dgemv;
  decltype(&::cblas_cgemv) cgemv;
  decltype(&::cblas_zgemv) zgemv;
};

// Returns OpenBLAS, which is loaded when it is first asked for: it takes memory and time that most verbs have no use
// for. It works on the calling thread only, with loops for the processor's features unless the environment names others
// (OPENBLAS_CORETYPE). Throws InputError if it is not installed, InternalError if it is a variant
// that threads cannot share, std::bad_alloc if it does not fit in memory.
const Blas& blas();

// Makes sure that so many threads can call at the same time. OpenBLAS takes a large buffer for each and would wait for
// ever if it got none; this throws std::bad_alloc instead.
void reserve_blas_buffers(unsigned threads);

}  // namespace doppler
