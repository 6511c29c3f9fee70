// Operators on sequences and optionals, which are values and no tensors.

#include <algorithm>

#include "doppler/kernels/onnx/interpreter.h"
#include "doppler/kernels/onnx/making.h"

namespace doppler::model {
namespace {

const Value& value_of(const Node& node, const Values& inputs, std::size_t input) {
  if (input >= inputs.size())
    throw InputError(fmt::format("{}: found no input {}; required it", describe(node), input));
  return inputs[input];
}

const std::vector<Value>& elements_of(const Node& node, const Values& inputs, std::size_t input) {
  const Value& value = value_of(node, inputs, input);
  if (value.kind != Value::Kind::sequence)
    throw InputError(fmt::format("{}: input {} is no sequence; required one", describe(node), input));
  return value.elements;
}

Tensor integer_tensor(Element element, Index value) {
  Tensor tensor(element, Shape{});
  if (element == Element::boolean)
    *tensor.as<std::uint8_t>() = value != 0 ? 1 : 0;
  else
    *tensor.as<Index>() = value;
  return tensor;
}

std::size_t position(const Node& node, const Values& inputs, std::size_t input, std::size_t size) {
  return static_cast<std::size_t>(
      checked_index(integer_of(node, inputs, input), static_cast<Index>(size), describe(node)));
}

Value inserted(const Node& node, const Values& inputs) {
  std::vector<Value> elements = elements_of(node, inputs, 0);
  const bool at_end = inputs.size() < 3 || inputs[2].kind == Value::Kind::nothing;
  // Negative positions count from the end of the sequence as it is, so that -1 is before its last element.
  std::size_t at = elements.size();
  if (!at_end && integer_of(node, inputs, 2) != static_cast<Index>(elements.size()))
    at = position(node, inputs, 2, elements.size());
  elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(at), value_of(node, inputs, 1));
  return Value::sequence(std::move(elements));
}

Value erased(const Node& node, const Values& inputs) {
  std::vector<Value> elements = elements_of(node, inputs, 0);
  if (elements.empty()) throw InputError(fmt::format("{}: found an empty sequence; required elements", describe(node)));
  const bool last = inputs.size() < 2 || inputs[1].kind == Value::Kind::nothing;
  const std::size_t at = last ? elements.size() - 1 : position(node, inputs, 1, elements.size());
  elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(at));
  return Value::sequence(std::move(elements));
}

Value split(const KernelLibrary& library, const Node& node, const Values& inputs, const Context& context) {
  const Tensor& data = tensor_of(node, inputs, 0);
  const auto rank = static_cast<Index>(data.type.shape.size());
  const Index axis = checked_index(node.attributes.integer("axis", 0), rank, describe(node));
  const Index size = data.type.shape[static_cast<std::size_t>(axis)];
  std::vector<Index> sizes;
  const bool given = inputs.size() > 1 && inputs[1].kind == Value::Kind::tensor;
  const bool single = given && tensor_of(node, inputs, 1).type.shape.empty();
  if (given && !single) {
    const Tensor& list = tensor_of(node, inputs, 1);
    for (Index i = 0; i < list.type.count(); ++i) sizes.push_back(integer_of(node, {taken(list, 0, i)}, 0));
  } else {
    const Index part = single ? integer_of(node, inputs, 1) : 1;
    if (part < 1) throw InputError(fmt::format("{}: found parts of {}; required 1 or more", describe(node), part));
    for (Index at = 0; at < size; at += part) sizes.push_back(std::min(part, size - at));
  }
  Node inner{node.name, "Split", "", {"x", "split"}, {}, {{"axis", axis, {}}}};
  for (std::size_t i = 0; i < sizes.size(); ++i) inner.outputs.push_back(fmt::format("part{}", i));
  Tensor parts(Element::i64, {static_cast<Index>(sizes.size())});
  std::copy(sizes.begin(), sizes.end(), parts.as<Index>());
  const std::map<std::string, int> opsets = {{"", 13}};
  std::vector<Value> elements =
      evaluate_node(library, inner, {data, parts}, {context.model, &opsets, nullptr, context.depth});
  const bool keep = given || node.attributes.integer("keepdims", 1) != 0;
  if (!keep)
    for (Value& element : elements) element = taken(element.tensor, axis, 0);
  return Value::sequence(std::move(elements));
}

Value joined(const KernelLibrary& library, const Node& node, const Values& inputs, const Context& context) {
  const std::vector<Value>& elements = elements_of(node, inputs, 0);
  if (elements.empty()) throw InputError(fmt::format("{}: found an empty sequence; required elements", describe(node)));
  const Index axis = node.attributes.integer("axis", 0);
  if (node.attributes.integer("new_axis", 0) != 0) {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < elements.size(); ++i) tensors.push_back(tensor_of(node, elements, i));
    const auto rank = static_cast<Index>(tensors[0].type.shape.size()) + 1;
    return stacked(tensors, checked_index(axis, rank, describe(node)), describe(node));
  }
  const Node inner{node.name, "Concat", "", {}, {"joined"}, {{"axis", axis, {}}}};
  const std::map<std::string, int> opsets = {{"", 13}};
  return evaluate_node(library, inner, elements, {context.model, &opsets, nullptr, context.depth})[0];
}

Values mapped(const KernelLibrary& library, const Node& node, const Values& inputs, const Context& context) {
  const auto body = node.attributes.graph("body");
  if (body == nullptr || body->inputs.size() != inputs.size())
    throw InputError(fmt::format("{}: found no body with {} inputs; required one", describe(node), inputs.size()));
  const std::size_t length = elements_of(node, inputs, 0).size();
  std::vector<std::vector<Value>> results(body->outputs.size());
  for (std::size_t i = 0; i < length; ++i) {
    Values arguments;
    for (const Value& input : inputs) {
      if (input.kind == Value::Kind::sequence && input.elements.size() != length)
        throw InputError(fmt::format("{}: found sequences of {} and {}; required one length", describe(node), length,
                                     input.elements.size()));
      arguments.push_back(input.kind == Value::Kind::sequence ? input.elements[i] : input);
    }
    Values outputs = run_graph(library, *body, arguments, context);
    for (std::size_t o = 0; o < results.size(); ++o) results[o].push_back(std::move(outputs[o]));
  }
  Values sequences;
  for (std::vector<Value>& elements : results) sequences.push_back(Value::sequence(std::move(elements)));
  return sequences;
}

}  // namespace

std::optional<Values> evaluate_sequence_operator(const KernelLibrary& library, const Node& node, const Values& inputs,
                                                 const Context& context) {
  const std::string& op = node.op_type;
  if (op == "SequenceEmpty") return Values{Value::sequence({})};
  if (op == "SequenceConstruct") return Values{Value::sequence(inputs)};
  if (op == "SequenceInsert") return Values{inserted(node, inputs)};
  if (op == "SequenceErase") return Values{erased(node, inputs)};
  if (op == "SequenceAt") {
    const std::vector<Value>& elements = elements_of(node, inputs, 0);
    return Values{elements[position(node, inputs, 1, elements.size())]};
  }
  if (op == "SequenceLength")
    return Values{integer_tensor(Element::i64, static_cast<Index>(elements_of(node, inputs, 0).size()))};
  if (op == "SplitToSequence") return Values{split(library, node, inputs, context)};
  if (op == "ConcatFromSequence") return Values{joined(library, node, inputs, context)};
  if (op == "SequenceMap") return mapped(library, node, inputs, context);
  if (op == "Optional") return Values{inputs.empty() ? Value() : inputs[0]};
  if (op == "OptionalHasElement")
    return Values{integer_tensor(Element::boolean, !inputs.empty() && inputs[0].kind != Value::Kind::nothing ? 1 : 0)};
  if (op == "OptionalGetElement") {
    if (value_of(node, inputs, 0).kind == Value::Kind::nothing)
      throw InputError(fmt::format("{}: found an empty optional; required an element", describe(node)));
    return Values{inputs[0]};
  }
  // Identity passes on everything.
  if (op == "Identity" && !inputs.empty() && inputs[0].kind != Value::Kind::tensor) return Values{inputs[0]};
  return std::nullopt;
}

}  // namespace doppler::model
