#pragma once

#include <string>
#include <string_view>

#include "doppler/program/onnx/tensor.h"

namespace doppler::model {

// Reads NumPy's array file with elements of any type that kernels know but bf16, which NumPy lacks. Throws InputError,
// whose text starts with `where`.
Tensor parse_tensor_npy(const std::string& where, std::string_view content);
// Writes it; a bf16 tensor as f32, which holds every one of its values.
std::string to_tensor_npy(const Tensor& tensor);

// Reads a tensor file by the end of its name: .npy or .pb, ONNX's own format. Throws InputError.
Tensor read_tensor(const std::string& path);

}  // namespace doppler::model
