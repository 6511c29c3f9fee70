#pragma once

#include <complex>

#include "doppler/program/expr/shape.h"

namespace doppler {

// The steps of a matrix, in elements; one of them is 1 unless there is a single row or column.
struct MatrixSteps {
  program::Index row = 0, column = 1;
};
// Whether a BLAS can read the matrix in place: rows or columns are contiguous and do not overlap.
bool is_blas_matrix(program::Index rows, program::Index columns, MatrixSteps steps);

struct GemmShape {
  program::Index m = 1, n = 1, k = 1;
  MatrixSteps a, b;          // m × k and k × n
  program::Index c_row = 1;  // rows of the m × n result are contiguous
};

// Computes c = a · b on the calling thread.
void gemm(const GemmShape& shape, const float* a, const float* b, float* c);
void gemm(const GemmShape& shape, const double* a, const double* b, double* c);
void gemm(const GemmShape& shape, const std::complex<float>* a, const std::complex<float>* b, std::complex<float>* c);
void gemm(const GemmShape& shape, const std::complex<double>* a, const std::complex<double>* b,
          std::complex<double>* c);

}  // namespace doppler
