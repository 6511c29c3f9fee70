#pragma once

#include "doppler/kernels/onnx/kernel.h"

// Nodes computed one by one from values: control flow, sequences, functions, and kernels for everything else.

namespace doppler::model {

using Values = std::vector<Value>;
using Context = KernelLibrary::Context;

// Computes a node. Kernels come from `library`.
Values evaluate_node(const KernelLibrary& library, const Node& node, const Values& inputs, const Context& context);
// Runs a graph whose inputs have these values; names that it does not have itself are those of the context.
Values run_graph(const KernelLibrary& library, const GraphBody& graph, const Values& inputs, const Context& context);

// Returns nothing if the operator is none on sequences or optionals.
std::optional<Values> evaluate_sequence_operator(const KernelLibrary& library, const Node& node, const Values& inputs,
                                                 const Context& context);

// Returns the tensor; throws InputError naming the node if the input is absent or something else.
const Tensor& tensor_of(const Node& node, const Values& inputs, std::size_t input);
Index integer_of(const Node& node, const Values& inputs, std::size_t input);
// Copies element `index` along an axis; the axis goes.
Tensor taken(const Tensor& from, Index axis, Index index);
// Puts tensors of one type beside each other, along a new axis.
Tensor stacked(const std::vector<Tensor>& tensors, Index axis, const std::string& where);
int opset_of(const Node& node, const Context& context);

}  // namespace doppler::model
