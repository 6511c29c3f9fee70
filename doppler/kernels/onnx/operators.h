#pragma once

#include "doppler/kernels/onnx/making.h"

namespace doppler::model {

// What the elements that a maker gets may be. KernelLibrary converts the others.
enum class Accepts : std::uint8_t {
  anything,     // every type as it is
  wide,         // f32, f64 and i64
  wide_or_u64,  // and u64
};

// A row of the table of operators that have kernels.
struct KernelRow {
  std::string_view name;  // "Conv", or "com.microsoft.Gelu" outside the standard domain
  MakeKernel make;
  Accepts accepts = Accepts::wide;
  // Inputs, as bits, whose values shapes depend on.
  std::uint32_t needs_values = 0;
  std::vector<LayoutChoice> (*layouts)(const Spec& spec) = nullptr;
  // Outputs, as bits, that have the element type of the first input, and so become narrow again if it was.
  std::uint32_t follows = 1;
};

// Returns the row of an operator; null if it has none.
const KernelRow* find_kernel_row(const std::string& domain, const std::string& op_type);
std::vector<std::string> kernel_row_names();

// Makes a kernel of a node whose types are those that the row accepts.
std::unique_ptr<NodeKernel> make_widened(const KernelRow& row, const KernelNode& node, PackedWeights* packed);

}  // namespace doppler::model
