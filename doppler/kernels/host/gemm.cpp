#include "doppler/kernels/host/gemm.h"

#include <algorithm>

#include "doppler/kernels/host/blas.h"
#include "doppler/kernels/host/onednn.h"

namespace doppler {

using program::Index;

namespace {

// The four types behind one name each; complex scalars and arrays go by address. oneDNN has products of f32 alone.
void blas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const float* a, int lda, const float* b,
               int ldb, float* c, int ldc) {
  const auto letter = [](CBLAS_TRANSPOSE transpose) { return transpose == CblasTrans ? 'T' : 'N'; };
  onednn_sgemm({letter(ta), letter(tb), m, n, k, a, lda, b, ldb, c, ldc});
}
void blas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const double* a, int lda, const double* b,
               int ldb, double* c, int ldc) {
  blas().dgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, 0, c, ldc);
}
void blas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const std::complex<float>* a, int lda,
               const std::complex<float>* b, int ldb, std::complex<float>* c, int ldc) {
  const std::complex<float> one = 1, zero = 0;
  blas().cgemm(CblasRowMajor, ta, tb, m, n, k, &one, a, lda, b, ldb, &zero, c, ldc);
}
void blas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const std::complex<double>* a, int lda,
               const std::complex<double>* b, int ldb, std::complex<double>* c, int ldc) {
  const std::complex<double> one = 1, zero = 0;
  blas().zgemm(CblasRowMajor, ta, tb, m, n, k, &one, a, lda, b, ldb, &zero, c, ldc);
}

void blas_gemv(CBLAS_TRANSPOSE t, int rows, int columns, const float* a, int lda, const float* x, int x_step, float* y,
               int y_step) {
  blas().sgemv(CblasRowMajor, t, rows, columns, 1, a, lda, x, x_step, 0, y, y_step);
}
void blas_gemv(CBLAS_TRANSPOSE t, int rows, int columns, const double* a, int lda, const double* x, int x_step,
               double* y, int y_step) {
  blas().dgemv(CblasRowMajor, t, rows, columns, 1, a, lda, x, x_step, 0, y, y_step);
}
void blas_gemv(CBLAS_TRANSPOSE t, int rows, int columns, const std::complex<float>* a, int lda,
               const std::complex<float>* x, int x_step, std::complex<float>* y, int y_step) {
  const std::complex<float> one = 1, zero = 0;
  blas().cgemv(CblasRowMajor, t, rows, columns, &one, a, lda, x, x_step, &zero, y, y_step);
}
void blas_gemv(CBLAS_TRANSPOSE t, int rows, int columns, const std::complex<double>* a, int lda,
               const std::complex<double>* x, int x_step, std::complex<double>* y, int y_step) {
  const std::complex<double> one = 1, zero = 0;
  blas().zgemv(CblasRowMajor, t, rows, columns, &one, a, lda, x, x_step, &zero, y, y_step);
}

bool rows_contiguous(Index rows, Index columns, MatrixSteps steps) {
  return (columns == 1 || steps.column == 1) && (rows == 1 || steps.row >= columns);
}

// How a BLAS is told about a row-major matrix or the transpose of one.
struct BlasMatrix {
  CBLAS_TRANSPOSE transpose;
  int rows, columns, leading;  // of the matrix as it is stored
};
BlasMatrix blas_matrix(Index rows, Index columns, MatrixSteps steps) {
  const auto leading = [](Index count, Index step, Index least) {
    return static_cast<int>(std::max(count == 1 ? least : step, least));
  };
  if (rows_contiguous(rows, columns, steps))
    return {CblasNoTrans, static_cast<int>(rows), static_cast<int>(columns), leading(rows, steps.row, columns)};
  return {CblasTrans, static_cast<int>(columns), static_cast<int>(rows), leading(columns, steps.column, rows)};
}

CBLAS_TRANSPOSE flipped(CBLAS_TRANSPOSE transpose) { return transpose == CblasTrans ? CblasNoTrans : CblasTrans; }

// A product with a single column or row takes the bandwidth of memory, which gemm, made to reuse, does not reach.
template <typename T>
void multiply(const GemmShape& s, const T* a, const T* b, T* c) {
  const BlasMatrix left = blas_matrix(s.m, s.k, s.a), right = blas_matrix(s.k, s.n, s.b);
  const auto step = [](Index size, Index value) { return size == 1 ? 1 : static_cast<int>(value); };
  if (s.n == 1)
    blas_gemv(left.transpose, left.rows, left.columns, a, left.leading, b, step(s.k, s.b.row), c, step(s.m, s.c_row));
  else if (s.m == 1)
    blas_gemv(flipped(right.transpose), right.rows, right.columns, b, right.leading, a, step(s.k, s.a.column), c, 1);
  else
    blas_gemm(left.transpose, right.transpose, static_cast<int>(s.m), static_cast<int>(s.n), static_cast<int>(s.k), a,
              left.leading, b, right.leading, c, static_cast<int>(s.c_row));
}

}  // namespace

bool is_blas_matrix(Index rows, Index columns, MatrixSteps steps) {
  return rows_contiguous(rows, columns, steps) || rows_contiguous(columns, rows, {steps.column, steps.row});
}

void gemm(const GemmShape& shape, const float* a, const float* b, float* c) { multiply(shape, a, b, c); }
void gemm(const GemmShape& shape, const double* a, const double* b, double* c) { multiply(shape, a, b, c); }
void gemm(const GemmShape& shape, const std::complex<float>* a, const std::complex<float>* b, std::complex<float>* c) {
  multiply(shape, a, b, c);
}
void gemm(const GemmShape& shape, const std::complex<double>* a, const std::complex<double>* b,
          std::complex<double>* c) {
  multiply(shape, a, b, c);
}

}  // namespace doppler
