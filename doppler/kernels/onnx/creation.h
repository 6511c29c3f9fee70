#pragma once

#include "doppler/kernels/onnx/making.h"

// Operators that make tensors from sizes, and small ones that fit nowhere else.

namespace doppler::model {

std::unique_ptr<NodeKernel> make_constant(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_shape(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_size(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_constant_of_shape(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_range(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_eye_like(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_trilu(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_det(const Spec& spec, PackedWeights*);

}  // namespace doppler::model
