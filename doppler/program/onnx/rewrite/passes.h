#pragma once

#include "doppler/program/onnx/rewrite/rewriting.h"

// The passes, each in a file of its own. Each returns how often it found what it looks for.

namespace doppler::program {

// Pad with zeros before a Conv or an AveragePool becomes its padding.
std::size_t pad_into_window(Rewriting& graph);
// A BatchNormalization after a Conv becomes part of the weights.
std::size_t fold_batch_norm(Rewriting& graph);
// The nodes of a layer normalisation, or of one by the root mean square, become one node.
std::size_t fuse_layer_norm(Rewriting& graph);
// The nodes of GELU, SiLU and hard swish become one node.
std::size_t fuse_activation(Rewriting& graph);
// softmax(scale · Q · Kᵀ + mask) · V with the transposes around it becomes one node.
std::size_t fuse_attention(Rewriting& graph);
// Transposes of the last two dimensions before a MatMul, and a scale after it, become its attributes.
std::size_t fuse_matmul(Rewriting& graph);
// Bias, residual and activation after a Conv, Gemm or MatMul become a part of it.
std::size_t fuse_epilogue(Rewriting& graph);

}  // namespace doppler::program
