#pragma once

#include "doppler/kernels/onnx/activation.h"
#include "doppler/kernels/onnx/making.h"

// Products of matrices, with what can be fused behind them.

namespace doppler::model {

std::unique_ptr<NodeKernel> make_matmul(const Spec& spec, PackedWeights* packed);        // ONNX's
std::unique_ptr<NodeKernel> make_fused_matmul(const Spec& spec, PackedWeights* packed);  // ours and com.microsoft's
std::unique_ptr<NodeKernel> make_gemm(const Spec& spec, PackedWeights* packed);          // and FusedGemm
std::unique_ptr<NodeKernel> make_attention(const Spec& spec, PackedWeights*);            // ours
std::unique_ptr<NodeKernel> make_packed_attention(const Spec& spec, PackedWeights*);     // of com.microsoft
std::unique_ptr<NodeKernel> make_einsum(const Spec& spec, PackedWeights*);

// A stack of products: the steps, in elements, with which both operands are read; those of batches are 0 where one
// matrix meets many.
struct Product {
  Shape batch;
  Index m = 1, n = 1, k = 1;
  struct Operand {
    std::vector<Index> batch;
    Index row = 1, column = 1;
  };
  Operand a, b;

  Index batches() const { return program::product(batch); }
};

// Computes the products one by one; of integers too. out is contiguous.
template <typename T>
void run_product(const Product& product, const T* a, const T* b, T* out);

}  // namespace doppler::model
