#pragma once

// Makes and runs kernels in tests.

#include "doppler/kernels/onnx/kernel.h"

namespace doppler::test {

// Returns numbers from -1 to 1, drawn by the seed.
model::Tensor drawn(const model::Shape& shape, std::uint64_t seed);
model::Tensor integers(const model::Shape& shape, const std::vector<model::Index>& values);
model::Tensor floats(const model::Shape& shape, const std::vector<float>& values);

// Returns a node whose inputs are these; `constants` are those, as bits, that are known when the kernel is made. An
// empty tensor type is an absent input.
model::KernelNode node_of(const std::string& op, const std::vector<model::Tensor>& inputs,
                          model::Attributes attributes = {}, std::uint32_t constants = ~0U);

// Runs a kernel on the bytes of its inputs; returns its outputs.
std::vector<model::Tensor> run_kernel(const model::NodeKernel& kernel, const std::vector<const std::byte*>& from);
// Makes the kernel and runs it on the inputs of the node, which all must be known.
std::vector<model::Tensor> run_node(const model::KernelNode& node, const std::vector<model::Tensor>& inputs);
model::Tensor run_first(const model::KernelNode& node, const std::vector<model::Tensor>& inputs);
model::Tensor compute(const std::string& op, const std::vector<model::Tensor>& inputs,
                      model::Attributes attributes = {});
model::Tensor in_layout(const model::Tensor& tensor, model::Layout layout);

// Returns the largest difference relative to the largest element.
double relative_difference(const model::Tensor& found, const model::Tensor& expected);

}  // namespace doppler::test
