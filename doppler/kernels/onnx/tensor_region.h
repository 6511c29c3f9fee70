#pragma once

#include <optional>

#include "doppler/kernels/strided_copy.h"
#include "doppler/program/onnx/tensor.h"

// Parts of tensors in memory, row-major or with channels last: what blocks of ops read and write.

namespace doppler::model {

// Returns by how many elements the tensor moves on per index of each dimension.
std::vector<Index> steps_of(const TensorType& type);

// Returns where the first element of `region` is, in elements, if the region has the elements of one stretch of memory;
// nothing if it does not.
std::optional<Index> dense_offset(const TensorType& type, const program::Rect& region);

// Returns a copy of `region` of a tensor to a dense one of `layout` that holds just the region, and its reverse.
StridedCopy gather_region(const TensorType& from, const program::Rect& region, Layout layout);
StridedCopy scatter_region(const TensorType& to, const program::Rect& region, Layout layout);

// Returns the smallest region of a tensor of `shape` that has every element of `region` of the same row-major elements
// seen under the shape `view`.
program::Rect region_below_view(const Shape& shape, const Shape& view, const program::Rect& region);

// Returns a copy of `region` of a tensor to a whole row-major tensor, of which nothing else is written.
StridedCopy region_to_row_major(const TensorType& from, const program::Rect& region);

}  // namespace doppler::model
