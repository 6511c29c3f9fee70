#include "tests/kernels/onnx/kernel_runs.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/rng.h"
#include "doppler/kernels/array.h"

namespace doppler::test {

using namespace model;

Tensor drawn(const Shape& shape, std::uint64_t seed) {
  Rng rng(seed);
  Tensor tensor(Element::f32, shape);
  for (Index i = 0; i < tensor.type.count(); ++i) tensor.as<float>()[i] = static_cast<float>(2 * rng.uniform() - 1);
  return tensor;
}

Tensor integers(const Shape& shape, const std::vector<Index>& values) {
  Tensor tensor(Element::i64, shape);
  std::copy(values.begin(), values.end(), tensor.as<Index>());
  return tensor;
}

Tensor floats(const Shape& shape, const std::vector<float>& values) {
  Tensor tensor(Element::f32, shape);
  std::copy(values.begin(), values.end(), tensor.as<float>());
  return tensor;
}

KernelNode node_of(const std::string& op, const std::vector<Tensor>& inputs, Attributes attributes,
                   std::uint32_t constants) {
  const std::size_t dot = op.rfind('.');
  KernelNode node{.name = "n",
                  .op_type = dot == std::string::npos ? op : op.substr(dot + 1),
                  .domain = dot == std::string::npos ? "" : op.substr(0, dot),
                  .attributes = std::move(attributes)};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool present = inputs[i].type.element != Element::none;
    const bool known = present && (constants >> i & 1) != 0;
    node.inputs.push_back({present ? std::optional(inputs[i].type) : std::nullopt, known ? &inputs[i] : nullptr});
  }
  return node;
}

std::vector<Tensor> run_kernel(const NodeKernel& kernel, const std::vector<const std::byte*>& from) {
  std::vector<Tensor> outputs;
  std::vector<std::byte*> to;
  for (const TensorType& type : kernel.outputs()) {
    outputs.emplace_back(type);
    to.push_back(outputs.back().data.get());
  }
  const AlignedBytes scratch(std::max<std::size_t>(1, kernel.scratch_bytes()));
  kernel.run(from, to, scratch.data());
  return outputs;
}

std::vector<Tensor> run_node(const KernelNode& node, const std::vector<Tensor>& inputs) {
  std::vector<const std::byte*> from;
  for (const Tensor& input : inputs) from.push_back(input.data.get());
  return run_kernel(*kernel_library().make(node), from);
}

Tensor run_first(const KernelNode& node, const std::vector<Tensor>& inputs) { return run_node(node, inputs)[0]; }

Tensor compute(const std::string& op, const std::vector<Tensor>& inputs, Attributes attributes) {
  return run_first(node_of(op, inputs, std::move(attributes)), inputs);
}

Tensor in_layout(const Tensor& tensor, Layout layout) {
  KernelNode node = node_of("doppler.Reorder", {tensor});
  node.inputs[0].constant = nullptr;
  node.output_layouts = {layout};
  return run_first(node, {tensor});
}

double relative_difference(const Tensor& found, const Tensor& expected) {
  if (found.type != expected.type) return HUGE_VAL;
  double largest = 1e-30, away = 0;
  for (Index i = 0; i < expected.type.count(); ++i) {
    const auto a = static_cast<double>(found.as<float>()[i]), b = static_cast<double>(expected.as<float>()[i]);
    largest = std::max(largest, std::abs(b));
    away = std::isnan(a) ? HUGE_VAL : std::max(away, std::abs(a - b));
  }
  return away / largest;
}

}  // namespace doppler::test
