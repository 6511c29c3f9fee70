// Kernels compute in few types; tensors of others are converted in scratch memory before and after.

#include <array>

#include "doppler/kernels/onnx/convert_elements.h"
#include "doppler/kernels/onnx/operators.h"

namespace doppler::model {
namespace {

std::size_t padded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

Element accepted(Element element, Accepts accepts) {
  const Element wide = wide_of(element);
  return wide == Element::u64 && accepts == Accepts::wide ? Element::i64 : wide;
}

constexpr std::size_t kMost = 64;  // inputs or outputs of a node that is converted

class WidenedKernel : public NodeKernel {
 public:
  WidenedKernel(std::unique_ptr<NodeKernel> inner, const KernelNode& node, const KernelNode& widened,
                std::vector<Tensor> constants, std::uint32_t follows)
      : inner_(std::move(inner)), constants_(std::move(constants)) {
    std::size_t at = padded(inner_->scratch_bytes());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      reads_.push_back(inner_->reads(i));
      Part part;
      if (node.inputs[i].type && node.inputs[i].type->element != widened.inputs[i].type->element && inner_->reads(i)) {
        part = {true, at, node.inputs[i].type->element, widened.inputs[i].type->element,
                static_cast<std::size_t>(node.inputs[i].type->count())};
        at += padded(widened.inputs[i].type->bytes());
      }
      inputs_.push_back(part);
    }
    outputs_ = inner_->outputs();
    const Element narrow = node.inputs.empty() || !node.inputs[0].type ? Element::none : node.inputs[0].type->element;
    const Element wide =
        widened.inputs.empty() || !widened.inputs[0].type ? Element::none : widened.inputs[0].type->element;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      Part part;
      TensorType& type = outputs_[i];
      if ((follows >> i & 1) != 0 && type.element == wide && narrow != wide) {
        part = {true, at, wide, narrow, static_cast<std::size_t>(type.count())};
        at += padded(type.bytes());
        type.element = narrow;
      }
      converted_.push_back(part);
    }
    scratch_bytes_ = at;
    implementation_ = inner_->implementation();
  }

  void run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
           std::byte* scratch) const override {
    std::array<const std::byte*, kMost> from{};
    std::array<std::byte*, kMost> to{};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      from[i] = inputs[i];
      if (!inputs_[i].convert) continue;
      from[i] = scratch + inputs_[i].at;
      cast_elements(inputs_[i].from, inputs[i], inputs_[i].to, scratch + inputs_[i].at, inputs_[i].count);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
      to[i] = i < converted_.size() && converted_[i].convert && outputs[i] != nullptr ? scratch + converted_[i].at
                                                                                      : outputs[i];
    inner_->run({from.data(), inputs.size()}, {to.data(), outputs.size()}, scratch);
    for (std::size_t i = 0; i < outputs.size() && i < converted_.size(); ++i)
      if (to[i] != outputs[i])
        cast_elements(converted_[i].from, to[i], converted_[i].to, outputs[i], converted_[i].count);
  }

 private:
  struct Part {
    bool convert = false;
    std::size_t at = 0;
    Element from = Element::none, to = Element::none;
    std::size_t count = 0;
  };
  std::unique_ptr<NodeKernel> inner_;
  std::vector<Tensor> constants_;  // the kernel may have kept their addresses
  std::vector<Part> inputs_, converted_;
};

}  // namespace

std::unique_ptr<NodeKernel> make_widened(const KernelRow& row, const KernelNode& node, PackedWeights* packed) {
  bool narrow = false;
  if (row.accepts != Accepts::anything)
    for (const KernelInput& input : node.inputs)
      narrow |= input.type && accepted(input.type->element, row.accepts) != input.type->element;
  if (!narrow) return row.make(Spec(node), packed);
  if (node.inputs.size() > kMost || node.outputs_used.size() > kMost)
    refuse(fmt::format("{} inputs of a type that is converted", node.inputs.size()), fmt::format("at most {}", kMost));
  KernelNode widened = node;
  std::vector<Tensor> constants;
  constants.reserve(node.inputs.size());  // addresses stay
  for (KernelInput& input : widened.inputs) {
    if (!input.type || accepted(input.type->element, row.accepts) == input.type->element) continue;
    const Element from = input.type->element;
    input.type->element = accepted(from, row.accepts);
    if (input.constant == nullptr) continue;
    constants.emplace_back(*input.type);
    cast_elements(from, input.constant->data.get(), input.type->element, constants.back().data.get(),
                  static_cast<std::size_t>(input.type->count()));
    input.constant = &constants.back();
  }
  // Converted constants go with the kernel, so that nobody else can use what is packed of them.
  std::unique_ptr<NodeKernel> inner = row.make(Spec(widened), nullptr);
  return std::make_unique<WidenedKernel>(std::move(inner), node, widened, std::move(constants), row.follows);
}

}  // namespace doppler::model
