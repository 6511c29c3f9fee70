// Nodes of ONNX's backend tests with attributes, shapes and values that nobody meant: every one is computed or refused.
// Under AddressSanitizer this is a test of memory safety.

#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <sstream>

#include <gtest/gtest.h>

#include "doppler/base/rng.h"
#include "doppler/errors.h"
#include "doppler/kernels/array.h"
#include "doppler/kernels/onnx/convert_elements.h"
#include "doppler/kernels/onnx/kernel.h"
#include "tests/kernels/onnx/backend_cases.h"
#include "tests/kernels/onnx/kernel_runs.h"
#include "tests/support/sanitized.h"

namespace doppler::test {
namespace {

using namespace model;

// Numbers at the edges of what kernels could mistake for sizes, axes or counts.
constexpr std::array<Index, 14> kNumbers = {
    -9223372036854775807 - 1, -4294967297, -100, -5, -2, -1, 0, 1, 2, 3, 7, 100, 4294967297, 9223372036854775807};
Index odd_number(Rng& rng) { return kNumbers[rng.below(kNumbers.size())]; }

void mutate_attribute(Attributes& attributes, Rng& rng) {
  if (attributes.all().empty()) return;
  const Attribute& chosen = attributes.all()[rng.below(static_cast<std::uint32_t>(attributes.all().size()))];
  const std::string name = chosen.name;
  Attribute::Values value = chosen.value;
  if (auto* number = std::get_if<Index>(&value)) *number = odd_number(rng);
  if (auto* list = std::get_if<std::vector<Index>>(&value)) {
    if (list->empty() || rng.below(4) == 0)
      list->push_back(odd_number(rng));
    else if (rng.below(4) == 0)
      list->pop_back();
    else
      (*list)[rng.below(static_cast<std::uint32_t>(list->size()))] = odd_number(rng);
  }
  if (auto* number = std::get_if<float>(&value)) *number = rng.below(2) == 0 ? -1e30F : 0.0F;
  if (std::holds_alternative<std::string>(value)) value = std::string("nonsense");
  attributes.set(name, std::move(value));
}

// Another shape of as many elements or fewer, so that the memory is enough.
void mutate_shape(Tensor& tensor, Rng& rng) {
  if (tensor.data == nullptr) return;
  Shape& shape = tensor.type.shape;
  if (shape.empty()) {
    shape.push_back(1);
    return;
  }
  const std::size_t at = rng.below(static_cast<std::uint32_t>(shape.size()));
  switch (rng.below(4)) {
    case 0:
      shape[at] = shape[at] > 1 ? shape[at] - 1 : 1;
      break;
    case 1:
      shape[at] = 0;
      break;
    case 2:
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), 1);
      break;
    default:
      if (shape[at] > 0) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

void mutate_value(Tensor& tensor, Rng& rng) {
  if (tensor.data == nullptr || tensor.type.count() == 0 || is_floating(tensor.type.element)) return;
  Tensor copy(tensor.type);
  std::copy_n(tensor.data.get(), tensor.type.bytes(), copy.data.get());
  const Index value = odd_number(rng);
  const std::size_t at = rng.below(static_cast<std::uint32_t>(tensor.type.count()));
  store_elements(tensor.type.element, &value, copy.data.get() + at * size_of(tensor.type.element), 1);
  tensor = copy;
}

// Makes the node's kernel and runs it, unless it would take much memory. Returns whether it was not refused.
bool try_node(const Node& node, const std::vector<Tensor>& inputs, int opset) try {
  constexpr std::size_t kMostBytes = 1 << 22;
  KernelNode made{
      .name = "mutant", .op_type = node.op_type, .domain = node.domain, .opset = opset, .attributes = node.attributes};
  std::vector<const std::byte*> from;
  for (const Tensor& input : inputs) {
    const bool present = input.type.element != Element::none;
    made.inputs.push_back(present ? KernelInput{input.type, &input} : KernelInput{});
    from.push_back(input.data.get());
  }
  made.outputs_used.assign(node.outputs.size(), true);
  const std::unique_ptr<NodeKernel> kernel = kernel_library().make(made);
  std::size_t bytes = kernel->scratch_bytes();
  for (const TensorType& type : kernel->outputs()) bytes += bytes > kMostBytes ? 0 : type.bytes();
  if (bytes > kMostBytes) return true;
  test::run_kernel(*kernel, from);
  return true;
} catch (const InputError&) {
  return false;
} catch (const std::bad_alloc&) {
  return false;
}

TEST(AMutatedNode, IsComputedOrRefused) {
  const std::vector<BackendCase> cases = backend_cases("node");
  if (cases.empty()) GTEST_SKIP() << "libonnx-testdata is absent; tools/install_deps test installs it";
  Rng rng(17);
  std::size_t computed = 0, refused = 0;
  for (const BackendCase& one : cases) {
    std::vector<BackendData> data;
    ModelBody body;
    try {
      std::ifstream file(one.model(), std::ios::binary);
      std::ostringstream content;
      content << file.rdbuf();
      body = parse_model_body(one.name, content.str());
      data = load_backend_data(one);
    } catch (const InputError&) {
      continue;  // text
    }
    const Node& node = body.graph.nodes[0];
    if (body.graph.nodes.size() != 1 || !kernel_library().has(node.domain, node.op_type)) continue;
    const int mutants = fewer_if_sanitized(40);
    for (int i = 0; i < mutants; ++i) {
      Node mutant = node;
      std::vector<Tensor> inputs;
      for (const std::string& name : node.inputs) {
        const auto found = data[0].inputs.find(name);
        inputs.push_back(found == data[0].inputs.end() ? Tensor() : found->second.tensor);
      }
      const std::uint32_t kinds = 1 + rng.below(7);
      if ((kinds & 1) != 0) mutate_attribute(mutant.attributes, rng);
      if ((kinds & 2) != 0 && !inputs.empty())
        mutate_shape(inputs[rng.below(static_cast<std::uint32_t>(inputs.size()))], rng);
      if ((kinds & 4) != 0 && !inputs.empty())
        mutate_value(inputs[rng.below(static_cast<std::uint32_t>(inputs.size()))], rng);
      (try_node(mutant, inputs, body.opsets[node.domain]) ? computed : refused)++;
    }
  }
  std::cout << computed << " mutants computed, " << refused << " refused\n";
  EXPECT_GT(computed, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace doppler::test
