#pragma once

#include "doppler/kernels/onnx/loops.h"
#include "doppler/kernels/onnx/making.h"

// Operators that compute each element of the output from one element of each input, with broadcasting.

namespace doppler::model {

// p and q of a unary function, by the attributes of the operator that it is named after.
struct UnaryParameters {
  float p = 0, q = 0;
};
UnaryParameters unary_parameters(const Spec& spec, Unary function);

std::unique_ptr<NodeKernel> make_unary(const Spec& spec, Unary function);
template <Unary F>
std::unique_ptr<NodeKernel> unary(const Spec& spec, PackedWeights*) {
  return make_unary(spec, F);
}
std::unique_ptr<NodeKernel> make_binary(const Spec& spec, Binary function);
template <Binary F>
std::unique_ptr<NodeKernel> binary(const Spec& spec, PackedWeights*) {
  return make_binary(spec, F);
}
std::unique_ptr<NodeKernel> make_comparison(const Spec& spec, Comparison function);
template <Comparison F>
std::unique_ptr<NodeKernel> comparison(const Spec& spec, PackedWeights*) {
  return make_comparison(spec, F);
}
// Folds any number of inputs by Add, Max or Min; Mean divides in the end.
std::unique_ptr<NodeKernel> make_variadic(const Spec& spec, Binary function, bool mean);
template <Binary F, bool Mean = false>
std::unique_ptr<NodeKernel> variadic(const Spec& spec, PackedWeights*) {
  return make_variadic(spec, F, Mean);
}

enum class Logic : std::uint8_t { logical_and, logical_or, logical_xor, bit_and, bit_or, bit_xor, shift };
std::unique_ptr<NodeKernel> make_logic(const Spec& spec, Logic function);
template <Logic F>
std::unique_ptr<NodeKernel> logic(const Spec& spec, PackedWeights*) {
  return make_logic(spec, F);
}

std::unique_ptr<NodeKernel> make_not(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_bitwise_not(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_clip(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_gelu(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_bias_gelu(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_is_nan(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_is_inf(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_mod(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_pow(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_where(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_cast(const Spec& spec, PackedWeights*);

// Returns the inputs' shapes in the order of their memory, for kernels that do not care about it as long as all inputs
// have the same; throws if they have not. `layout` is that of the output.
struct Physical {
  std::vector<Shape> inputs;
  Shape output;     // the broadcast one, in the order of memory
  TensorType type;  // of the output, its element type that of the first input
};
Physical physical_shapes(const Spec& spec, std::size_t inputs);
// Returns the layouts in which an elementwise operator can have its tensors.
std::vector<LayoutChoice> elementwise_layouts(const Spec& spec);

}  // namespace doppler::model
