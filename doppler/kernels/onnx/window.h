#pragma once

#include "doppler/kernels/onnx/making.h"

namespace doppler::model {

// A window that slides over the dimensions of space: of a convolution or a pool. The shape is that of [N, C, space…].
struct Window {
  Shape in, kernel, strides, dilations, before, after, out;  // one per dimension of space

  std::size_t rank() const { return in.size(); }
  Index kernel_count() const { return program::product(kernel); }
};

// Reads kernel_shape (unless given), strides, dilations, pads and auto_pad; checks them and computes the output's size.
// `ceil` rounds it up, as long as the last window begins within the padded input.
Window window_of(const Spec& spec, const Shape& shape, std::optional<Shape> kernel, bool ceil = false);

std::unique_ptr<NodeKernel> make_conv(const Spec& spec, PackedWeights* packed);  // ONNX's, ours, com.microsoft's
std::unique_ptr<NodeKernel> make_conv_transpose(const Spec& spec, PackedWeights* packed);
std::vector<LayoutChoice> conv_layouts(const Spec& spec);
std::unique_ptr<NodeKernel> make_pool(const Spec& spec, PackedWeights*);  // AveragePool, MaxPool and LpPool
std::vector<LayoutChoice> pool_layouts(const Spec& spec);
std::unique_ptr<NodeKernel> make_max_unpool(const Spec& spec, PackedWeights*);

// A convolution by plain loops, for the types and forms that oneDNN has not.
struct DirectConv {
  Window window;
  Index batch = 1, in_channels = 1, out_channels = 1, groups = 1;
};
template <typename T>
void run_direct_conv(const DirectConv& conv, const T* x, const T* weights, const T* bias, T* out);
// Its transpose: each element of the input is spread over a window of the output, which `window.in` is the size of.
template <typename T>
void run_direct_conv_transpose(const DirectConv& conv, const T* x, const T* weights, const T* bias, T* out);

}  // namespace doppler::model
