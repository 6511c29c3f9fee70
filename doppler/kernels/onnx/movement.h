#pragma once

#include "doppler/kernels/onnx/making.h"

// Operators that copy, repeat, permute or cut elements of any type.

namespace doppler::model {

// The output is the first input under another shape: Reshape, Flatten, Squeeze, Unsqueeze, Identity, Dropout …
std::unique_ptr<NodeKernel> make_reshape(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_flatten(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_squeeze(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_unsqueeze(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_identity(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_dropout(const Spec& spec, PackedWeights*);

std::unique_ptr<NodeKernel> make_transpose(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_slice(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_expand(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_tile(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_concat(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_split(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_pad(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_depth_to_space(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_space_to_depth(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_reorder(const Spec& spec, PackedWeights*);

// Returns the layouts in which Concat, and operators that keep the element order, can have their tensors.
std::vector<LayoutChoice> concat_layouts(const Spec& spec);
std::vector<LayoutChoice> identity_layouts(const Spec& spec);

// Returns the number of channels in a block; 1 where there are none.
Index block_of(Layout layout);
// Throws if a tensor cannot have the layout that it claims.
void check_layout(const TensorType& type);

// A kernel that copies the bytes of input 0 to output 0.
std::unique_ptr<NodeKernel> make_copy(const Spec& spec, TensorType output, std::uint32_t not_read = 0);

}  // namespace doppler::model
