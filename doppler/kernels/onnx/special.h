#pragma once

#include "doppler/kernels/onnx/making.h"

// Operators of particular fields: recurrent cells, quantisation, images, signals, losses, text.

namespace doppler::model {

std::unique_ptr<NodeKernel> make_quick_gelu(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_global_lp_pool(const Spec& spec, PackedWeights*);

std::unique_ptr<NodeKernel> make_recurrent(const Spec& spec, PackedWeights*);  // RNN, GRU and LSTM

std::unique_ptr<NodeKernel> make_quantize(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_dequantize(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_dynamic_quantize(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_integer_product(const Spec& spec, PackedWeights*);    // MatMulInteger, ConvInteger
std::unique_ptr<NodeKernel> make_quantized_product(const Spec& spec, PackedWeights*);  // QLinearMatMul, QLinearConv

std::unique_ptr<NodeKernel> make_resize(const Spec& spec, PackedWeights*);  // and Upsample
std::unique_ptr<NodeKernel> make_grid_sample(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_roi_align(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_non_max_suppression(const Spec& spec, PackedWeights*);

std::unique_ptr<NodeKernel> make_dft(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_stft(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_window(const Spec& spec, PackedWeights*);  // HannWindow, HammingWindow, BlackmanWindow
std::unique_ptr<NodeKernel> make_mel_weights(const Spec& spec, PackedWeights*);

std::unique_ptr<NodeKernel> make_likelihood_loss(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_cross_entropy_loss(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_tf_idf(const Spec& spec, PackedWeights*);

}  // namespace doppler::model
