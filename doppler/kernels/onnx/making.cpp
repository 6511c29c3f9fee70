#include "doppler/kernels/onnx/making.h"

#include <algorithm>

#include "doppler/kernels/onnx/convert_elements.h"

namespace doppler::model {
namespace {

class FunctionKernel : public NodeKernel {
 public:
  FunctionKernel(const Spec& spec, std::vector<TensorType> outputs, Compute compute, KernelTraits traits)
      : compute_(std::move(compute)), where_(describe(spec.node)) {
    outputs_ = std::move(outputs);
    for (std::size_t i = 0; i < spec.inputs(); ++i)
      reads_.push_back(spec.has(i) && (i >= 32 || (traits.not_read >> i & 1) == 0));
    scratch_bytes_ = traits.scratch_bytes;
    in_place_ = traits.in_place;
    implementation_ = std::move(traits.implementation);
  }

  void run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
           std::byte* scratch) const override {
    compute_({inputs, outputs, scratch, where_});
  }

 private:
  Compute compute_;
  std::string where_;
};

}  // namespace

std::string describe(const KernelNode& node) {
  if (node.name.starts_with("node '")) return node.name;  // described already
  return fmt::format("node '{}' ({}{}{})", node.name, node.domain, node.domain.empty() ? "" : ".", node.op_type);
}

void refuse(const std::string& found, const std::string& required) {
  throw InputError(fmt::format("found {}; required {}", found, required));
}

const TensorType& Spec::type(std::size_t input) const {
  if (!has(input)) refuse(fmt::format("no input {}", input), "it");
  return *node.inputs[input].type;
}

const Tensor& Spec::known(std::size_t input) const {
  type(input);
  const Tensor* constant = node.inputs[input].constant;
  if (constant == nullptr)
    refuse(fmt::format("input {} computed from data", input), "a constant, because shapes depend on it");
  return *constant;
}

std::vector<Index> Spec::known_integers(std::size_t input) const {
  const Tensor& tensor = known(input);
  if (is_floating(tensor.type.element))
    refuse(fmt::format("input {} of {}", input, to_string(tensor.type.element)), "integers");
  std::vector<Index> values(static_cast<std::size_t>(tensor.type.count()));
  load_elements(tensor.type.element, tensor.data.get(), values.data(), values.size());
  return values;
}

std::vector<double> Spec::known_reals(std::size_t input) const {
  const Tensor& tensor = known(input);
  std::vector<double> values(static_cast<std::size_t>(tensor.type.count()));
  load_elements(tensor.type.element, tensor.data.get(), values.data(), values.size());
  return values;
}

Index Spec::known_integer(std::size_t input) const {
  const std::vector<Index> values = known_integers(input);
  if (values.size() != 1) refuse(fmt::format("{} elements in input {}", values.size(), input), "one");
  return values[0];
}

Index Spec::axis(Index axis, std::size_t rank) const {
  const auto size = static_cast<Index>(rank);
  const Index counted = axis < 0 ? axis + size : axis;
  if (counted < 0 || counted >= size)
    refuse(fmt::format("axis {} of a tensor of {} dimensions", axis, rank), "one of its axes");
  return counted;
}

std::vector<Index> Spec::axes(const std::vector<Index>& axes, std::size_t rank) const {
  std::vector<Index> result;
  for (const Index one : axes) result.push_back(axis(one, rank));
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end())
    refuse(fmt::format("axes {}", program::to_string(axes)), "each once");
  return result;
}

std::optional<std::vector<Index>> Spec::attribute_or_input(std::string_view name, std::size_t input) const {
  if (has(input)) return known_integers(input);
  return node.attributes.integers(name);
}

void Spec::require_inputs(std::size_t least, std::size_t most) const {
  if (inputs() < least || inputs() > most)
    refuse(fmt::format("{} inputs", inputs()),
           least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most));
  for (std::size_t i = 0; i < least; ++i) type(i);
}

void Spec::require_rank(std::size_t input, std::size_t least, std::size_t most) const {
  if (rank(input) < least || rank(input) > most)
    refuse(fmt::format("input {} of shape {}", input, program::to_string(shape(input))),
           least == most ? fmt::format("{} dimensions", least) : fmt::format("{} to {} dimensions", least, most));
}

void Spec::require_element(std::size_t input, std::initializer_list<Element> elements) const {
  std::string names;
  for (const Element one : elements) {
    if (one == element(input)) return;
    names += fmt::format("{}{}", names.empty() ? "" : " or ", to_string(one));
  }
  refuse(fmt::format("input {} of {}", input, to_string(element(input))), names);
}

void Spec::require_row_major() const {
  for (std::size_t i = 0; i < inputs(); ++i)
    if (has(i) && type(i).layout != Layout::row_major)
      refuse(fmt::format("input {} in layout {}", i, to_string(type(i).layout)), "row-major");
  for (const Layout layout : node.output_layouts)
    if (layout != Layout::row_major) refuse(fmt::format("an output in layout {}", to_string(layout)), "row-major");
}

Shape checked_shape(Shape shape) {
  for (const Index size : shape)
    if (size < 0) refuse(fmt::format("shape {}", program::to_string(shape)), "no negative size");
  if (shape.size() > kMostDimensions)
    refuse(fmt::format("{} dimensions", shape.size()), fmt::format("at most {}", kMostDimensions));
  // Sizes of 0 are left out, so that the product of any of the others is one that we count too.
  Index count = 1;
  for (const Index size : shape) {
    if (size > program::kMostElements / 16 / count)
      refuse(fmt::format("shape {}", program::to_string(shape)),
             fmt::format("at most {} elements", program::kMostElements / 16));
    count *= std::max<Index>(size, 1);
  }
  return shape;
}

Shape broadcast_shapes(const std::vector<Shape>& shapes) {
  Shape result;
  for (const Shape& shape : shapes) {
    if (shape.size() > result.size()) result.insert(result.begin(), shape.size() - result.size(), 1);
    const std::size_t skipped = result.size() - shape.size();
    for (std::size_t i = 0; i < shape.size(); ++i) {
      Index& size = result[skipped + i];
      if (size == shape[i] || shape[i] == 1) continue;
      if (size != 1) {
        std::string all;
        for (const Shape& one : shapes) all += (all.empty() ? "" : " and ") + program::to_string(one);
        refuse("shapes " + all, "ones that can be broadcast");
      }
      size = shape[i];
    }
  }
  return checked_shape(std::move(result));
}

std::vector<Index> row_major_steps(const Shape& shape) {
  std::vector<Index> steps(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) steps[i - 1] = steps[i] * shape[i];
  return steps;
}

AroundAxis around(const Shape& shape, Index axis) {
  AroundAxis result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto at = static_cast<Index>(i);
    (at < axis ? result.before : at == axis ? result.size : result.after) *= shape[i];
  }
  return result;
}

std::unique_ptr<NodeKernel> make_function_kernel(const Spec& spec, std::vector<TensorType> outputs, Compute compute,
                                                 KernelTraits traits) {
  for (TensorType& output : outputs) output.shape = checked_shape(std::move(output.shape));
  return std::make_unique<FunctionKernel>(spec, std::move(outputs), std::move(compute), std::move(traits));
}

}  // namespace doppler::model
