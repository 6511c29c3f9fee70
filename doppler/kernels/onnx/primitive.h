#pragma once

#include <dnnl.hpp>
#include <mutex>

#include "doppler/kernels/onnx/activation.h"

// What kernels on oneDNN share. Primitives run on the calling thread alone; an implementation that oneDNN calls its
// reference is never used: it is slower than a plain loop of ours.

namespace doppler::model {

using Desc = dnnl::memory::desc;

const dnnl::engine& processor_engine();

// Returns the memory of a tensor as oneDNN describes it.
Desc desc_of(const TensorType& type);
Desc any_desc(const Shape& shape);
Desc strided_desc(const Shape& shape, const std::vector<Index>& steps);

// Scratch memory is the caller's.
dnnl::primitive_attr user_scratch();
void append_activation(dnnl::post_ops& ops, const Activation& activation);

bool is_reference(const char* implementation);

// Looks for an implementation that is no reference one. Returns false if there is none.
template <typename PrimitiveDesc>
bool choose_implementation(PrimitiveDesc& desc) {
  if (!desc) return false;
  while (is_reference(desc.impl_info_str()))
    if (!desc.next_impl()) return false;
  return true;
}

// A primitive whose memories get their addresses in each run. Threads that run it at the same time have their own.
class PrimitiveCall {
 public:
  struct Argument {
    int name;  // DNNL_ARG_…
    Desc desc;
  };
  PrimitiveCall() = default;
  PrimitiveCall(dnnl::primitive primitive, std::vector<Argument> arguments)
      : primitive_(std::move(primitive)), arguments_(std::move(arguments)), idle_(std::make_unique<Idle>()) {}

  // Addresses are in the order of the arguments.
  void run(std::span<const std::byte* const> addresses) const;

 private:
  using Memories = std::unordered_map<int, dnnl::memory>;
  struct Idle {
    std::mutex mutex;
    std::vector<std::unique_ptr<Memories>> memories;
  };
  dnnl::primitive primitive_;
  std::vector<Argument> arguments_;
  std::unique_ptr<Idle> idle_;
};

// A constant in the format that a primitive wants.
using PackedTensor = std::shared_ptr<const std::byte>;
PackedTensor pack(const std::byte* memory, const Desc& from, const Desc& to, PackedWeights* packed);
std::unique_ptr<PackedWeights> make_packed_tensors();

// Reorders from one format to another; nothing to do where they are the same.
PrimitiveCall make_reorder_call(const Desc& from, const Desc& to);

// Scratch memory that several steps of a kernel share, one after the other, on boundaries of 64 bytes.
class ScratchPlan {
 public:
  std::size_t add(std::size_t bytes) {
    const std::size_t begin = end_;
    end_ += (bytes + 63) / 64 * 64;
    return begin;
  }
  std::size_t bytes() const { return end_; }

 private:
  std::size_t end_ = 0;
};

}  // namespace doppler::model
