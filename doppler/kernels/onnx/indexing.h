#pragma once

#include "doppler/kernels/onnx/making.h"

// Operators that pick elements by indices, or that find indices of elements.

namespace doppler::model {

std::unique_ptr<NodeKernel> make_gather(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_gather_elements(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_gather_nd(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_scatter_elements(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_scatter_nd(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_one_hot(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_compress(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_reverse_sequence(const Spec& spec, PackedWeights*);

std::unique_ptr<NodeKernel> make_non_zero(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_unique_elements(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_top_k(const Spec& spec, PackedWeights*);
std::unique_ptr<NodeKernel> make_arg_max(const Spec& spec, PackedWeights*);  // and ArgMin

// Indices in memory, of i32 or i64.
class Indices {
 public:
  Indices(Element element, const std::byte* memory) : wide_(element == Element::i64), memory_(memory) {}
  Index operator[](Index i) const {
    return wide_ ? reinterpret_cast<const std::int64_t*>(memory_)[i]
                 : reinterpret_cast<const std::int32_t*>(memory_)[i];
  }

 private:
  bool wide_;
  const std::byte* memory_;
};

}  // namespace doppler::model
