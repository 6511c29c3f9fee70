#include "doppler/kernels/onnx/interpreter.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "doppler/kernels/array.h"
#include "doppler/kernels/onnx/convert_elements.h"
#include "doppler/kernels/onnx/making.h"
#include "doppler/kernels/onnx/strided.h"

namespace doppler::model {
namespace {

constexpr int kDeepestCall = 64;

// The names that a graph sees: its own, then those around it.
class Names : public KernelLibrary::Outer {
 public:
  explicit Names(const KernelLibrary::Outer* outer) : outer_(outer) {}
  const Value* find(const std::string& name) const override {
    const auto found = values_.find(name);
    if (found != values_.end()) return &found->second;
    return outer_ != nullptr ? outer_->find(name) : nullptr;
  }
  void set(const std::string& name, Value value) { values_.insert_or_assign(name, std::move(value)); }

 private:
  std::unordered_map<std::string, Value> values_;
  const KernelLibrary::Outer* outer_;
};

bool is_true(const Node& node, const Value& value) {
  if (value.kind != Value::Kind::tensor || value.tensor.type.element != Element::boolean ||
      value.tensor.type.count() != 1)
    throw InputError(fmt::format("{}: found a condition that is no single bool; required one", describe(node)));
  return *value.tensor.as<std::uint8_t>() != 0;
}

Tensor single(Element element, Index value) {
  Tensor tensor(element, Shape{});
  store_elements(element, &value, tensor.data.get(), 1);
  return tensor;
}

void require_graph(const Node& node, const std::shared_ptr<const GraphBody>& body, std::size_t inputs,
                   const char* name) {
  if (body == nullptr) throw InputError(fmt::format("{}: found no graph '{}'; required one", describe(node), name));
  if (body->inputs.size() != inputs)
    throw InputError(
        fmt::format("{}: graph '{}' has {} inputs; required {}", describe(node), name, body->inputs.size(), inputs));
}

Values run_if(const KernelLibrary& library, const Node& node, const Values& inputs, const Context& context) {
  if (inputs.empty()) throw InputError(fmt::format("{}: found no condition; required one", describe(node)));
  const char* branch = is_true(node, inputs[0]) ? "then_branch" : "else_branch";
  const auto body = node.attributes.graph(branch);
  require_graph(node, body, 0, branch);
  return run_graph(library, *body, {}, context);
}

Values run_loop(const KernelLibrary& library, const Node& node, const Values& inputs, const Context& context) {
  const auto body = node.attributes.graph("body");
  const std::size_t carried = inputs.size() < 2 ? 0 : inputs.size() - 2;
  require_graph(node, body, carried + 2, "body");
  if (body->outputs.size() < carried + 1)
    throw InputError(fmt::format("{}: the body has {} outputs; required {} or more", describe(node),
                                 body->outputs.size(), carried + 1));
  const bool bounded = !inputs.empty() && inputs[0].kind == Value::Kind::tensor;
  const Index turns = bounded ? integer_of(node, inputs, 0) : 0;
  const bool conditional = inputs.size() > 1 && inputs[1].kind == Value::Kind::tensor;
  bool going = !conditional || is_true(node, inputs[1]);
  Values state(inputs.begin() + std::min<std::ptrdiff_t>(2, static_cast<std::ptrdiff_t>(inputs.size())), inputs.end());
  std::vector<std::vector<Tensor>> scanned(body->outputs.size() - carried - 1);
  for (Index turn = 0; going && (!bounded || turn < turns); ++turn) {
    Values arguments = {single(Element::i64, turn), single(Element::boolean, going ? 1 : 0)};
    arguments.insert(arguments.end(), state.begin(), state.end());
    Values results = run_graph(library, *body, arguments, context);
    if (conditional || !bounded) going = is_true(node, results[0]);
    std::move(results.begin() + 1, results.begin() + 1 + static_cast<std::ptrdiff_t>(carried), state.begin());
    for (std::size_t i = 0; i < scanned.size(); ++i) scanned[i].push_back(tensor_of(node, results, 1 + carried + i));
  }
  for (const std::vector<Tensor>& tensors : scanned) state.emplace_back(stacked(tensors, 0, describe(node)));
  return state;
}

std::vector<Index> list_of(const Node& node, const char* name, std::size_t size) {
  std::vector<Index> list = node.attributes.integers(name).value_or(std::vector<Index>(size, 0));
  if (list.size() != size)
    throw InputError(fmt::format("{}: found {} {}; required {}", describe(node), list.size(), name, size));
  return list;
}

Index axis_in(const Node& node, Index axis, std::size_t rank) {
  const Index counted = axis < 0 ? axis + static_cast<Index>(rank) : axis;
  if (counted < 0 || counted >= static_cast<Index>(rank))
    throw InputError(
        fmt::format("{}: found axis {} of {} dimensions; required one of them", describe(node), axis, rank));
  return counted;
}

Values run_scan(const KernelLibrary& library, const Node& node, const Values& inputs, const Context& context) {
  const auto body = node.attributes.graph("body");
  const auto scans =
      static_cast<std::size_t>(std::clamp<Index>(node.attributes.integer("num_scan_inputs", 0), 0, 1 << 20));
  if (scans < 1 || scans > inputs.size())
    throw InputError(
        fmt::format("{}: scans {} of {} inputs; required one or more", describe(node), scans, inputs.size()));
  require_graph(node, body, inputs.size(), "body");
  const std::size_t states = inputs.size() - scans;
  if (body->outputs.size() < states)
    throw InputError(
        fmt::format("{}: the body has {} outputs; required {} or more", describe(node), body->outputs.size(), states));
  const std::vector<Index> axes = list_of(node, "scan_input_axes", scans);
  const std::vector<Index> directions = list_of(node, "scan_input_directions", scans);
  const std::size_t outs = body->outputs.size() - states;
  const std::vector<Index> out_axes = list_of(node, "scan_output_axes", outs);
  const std::vector<Index> out_directions = list_of(node, "scan_output_directions", outs);
  Index turns = -1;
  for (std::size_t i = 0; i < scans; ++i) {
    const Shape& shape = tensor_of(node, inputs, states + i).type.shape;
    const Index size = shape[static_cast<std::size_t>(axis_in(node, axes[i], shape.size()))];
    if (turns >= 0 && size != turns)
      throw InputError(fmt::format("{}: scans lengths {} and {}; required one", describe(node), turns, size));
    turns = size;
  }
  Values state(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(states));
  std::vector<std::vector<Tensor>> scanned(outs);
  for (Index turn = 0; turn < turns; ++turn) {
    Values arguments = state;
    for (std::size_t i = 0; i < scans; ++i) {
      const Tensor& from = tensor_of(node, inputs, states + i);
      const Index axis = axis_in(node, axes[i], from.type.shape.size());
      arguments.emplace_back(taken(from, axis, directions[i] == 0 ? turn : turns - 1 - turn));
    }
    Values results = run_graph(library, *body, arguments, context);
    for (std::size_t i = 0; i < outs; ++i) scanned[i].push_back(tensor_of(node, results, states + i));
    results.resize(states);
    state = std::move(results);
  }
  for (std::size_t i = 0; i < outs; ++i) {
    if (out_directions[i] != 0) std::reverse(scanned[i].begin(), scanned[i].end());
    const std::size_t rank = scanned[i].empty() ? 1 : scanned[i][0].type.shape.size() + 1;
    state.emplace_back(stacked(scanned[i], axis_in(node, out_axes[i], rank), describe(node)));
  }
  return state;
}

// In operator set 8 a Scan went over every sample of a batch, and its first input gave their lengths.
Values run_batched_scan(const KernelLibrary& library, const Node& node, const Values& inputs, const Context& context) {
  if (!inputs.empty() && inputs[0].kind != Value::Kind::nothing)
    throw InputError(fmt::format("{}: found lengths of sequences; required none", describe(node)));
  std::vector<std::vector<Tensor>> results;
  const Index batch =
      inputs.size() < 2 || tensor_of(node, inputs, 1).type.shape.empty() ? 0 : tensor_of(node, inputs, 1).type.shape[0];
  for (Index sample = 0; sample < batch; ++sample) {
    Values arguments;
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      const Tensor& from = tensor_of(node, inputs, i);
      if (from.type.shape.empty() || from.type.shape[0] != batch)
        throw InputError(fmt::format("{}: found batches of other sizes; required {}", describe(node), batch));
      arguments.emplace_back(taken(from, 0, sample));
    }
    const Values one = run_scan(library, node, arguments, context);
    results.resize(one.size());
    for (std::size_t i = 0; i < one.size(); ++i) results[i].push_back(one[i].tensor);
  }
  Values outputs;
  for (const std::vector<Tensor>& tensors : results) outputs.emplace_back(stacked(tensors, 0, describe(node)));
  return outputs;
}

// Attributes of a function's nodes that refer to those of the call get their values, in bodies too.
Node resolved(const Node& node, const Attributes& call) {
  Node result = node;
  result.attributes = {};
  for (const Attribute& attribute : node.attributes.all()) {
    if (!attribute.refers_to.empty()) {
      if (const Attribute* found = call.find(attribute.refers_to)) result.attributes.set(attribute.name, found->value);
    } else if (const auto* body = std::get_if<std::shared_ptr<const GraphBody>>(&attribute.value)) {
      auto copy = std::make_shared<GraphBody>(**body);
      for (Node& inner : copy->nodes) inner = resolved(inner, call);
      result.attributes.set(attribute.name, std::shared_ptr<const GraphBody>(std::move(copy)));
    } else {
      result.attributes.set(attribute.name, attribute.value);
    }
  }
  return result;
}

Values call_function(const KernelLibrary& library, const FunctionBody& function, const Node& node, const Values& inputs,
                     const Context& context) {
  if (context.depth >= kDeepestCall)
    throw InputError(fmt::format("{}: calls deeper than {}; required no recursion", describe(node), kDeepestCall));
  GraphBody body = function.body;
  for (Node& inner : body.nodes) inner = resolved(inner, node.attributes);
  Values arguments = inputs;
  arguments.resize(body.inputs.size());
  return run_graph(library, body, arguments, {context.model, &function.opsets, nullptr, context.depth + 1});
}

Values run_kernel(const KernelLibrary& library, const Node& node, const Values& inputs, const Context& context) {
  KernelNode made{.name = describe(node),
                  .op_type = node.op_type,
                  .domain = node.domain,
                  .opset = opset_of(node, context),
                  .attributes = node.attributes};
  std::vector<const std::byte*> from;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    KernelInput input;
    if (inputs[i].kind != Value::Kind::nothing) {
      const Tensor& tensor = tensor_of(node, inputs, i);
      input = {tensor.type, &tensor};
    }
    made.inputs.push_back(input);
    from.push_back(inputs[i].kind == Value::Kind::nothing ? nullptr : inputs[i].tensor.data.get());
  }
  made.outputs_used.clear();
  for (const std::string& name : node.outputs) made.outputs_used.push_back(!name.empty());
  const std::unique_ptr<NodeKernel> kernel = library.make(made);
  Values outputs;
  std::vector<std::byte*> to;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const bool used = i < kernel->outputs().size() && kernel->outputs()[i].element != Element::none;
    outputs.push_back(used ? Value(Tensor(kernel->outputs()[i])) : Value());
    to.push_back(outputs.back().tensor.data.get());
  }
  const AlignedBytes scratch(std::max<std::size_t>(1, kernel->scratch_bytes()));
  kernel->run(from, to, scratch.data());
  return outputs;
}

}  // namespace

const Tensor& tensor_of(const Node& node, const Values& inputs, std::size_t input) {
  if (input >= inputs.size() || inputs[input].kind != Value::Kind::tensor)
    throw InputError(fmt::format("{}: found no tensor for input {}; required one", describe(node), input));
  return inputs[input].tensor;
}

Index integer_of(const Node& node, const Values& inputs, std::size_t input) {
  const Tensor& tensor = tensor_of(node, inputs, input);
  if (tensor.type.count() != 1 || is_floating(tensor.type.element))
    throw InputError(
        fmt::format("{}: input {} is {}; required one integer", describe(node), input, to_string(tensor.type)));
  Index value = 0;
  load_elements(tensor.type.element, tensor.data.get(), &value, 1);
  return value;
}

int opset_of(const Node& node, const Context& context) {
  if (context.opsets == nullptr) return 17;
  const auto found = context.opsets->find(node.domain);
  return found == context.opsets->end() ? 1 : found->second;
}

Tensor taken(const Tensor& from, Index axis, Index index) {
  const AroundAxis dims = around(from.type.shape, axis);
  Shape shape = from.type.shape;
  shape.erase(shape.begin() + axis);
  Tensor result(from.type.element, shape);
  const std::size_t bytes = size_of(from.type.element);
  const StridedCopy copy(bytes, {dims.before, dims.after}, {dims.size * dims.after, 1}, {dims.after, 1});
  copy.run(from.data.get() + static_cast<std::size_t>(index * dims.after) * bytes, result.data.get());
  return result;
}

Tensor stacked(const std::vector<Tensor>& tensors, Index axis, const std::string& where) {
  if (tensors.empty()) return Tensor(Element::f32, {0});
  const TensorType& type = tensors[0].type;
  Shape shape = type.shape;
  shape.insert(shape.begin() + axis, static_cast<Index>(tensors.size()));
  Tensor result(type.element, shape);
  const AroundAxis dims = around(shape, axis);
  const std::size_t bytes = size_of(type.element);
  const StridedCopy copy(bytes, {dims.before, dims.after}, {dims.after, 1}, {dims.size * dims.after, 1});
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].type != type)
      throw InputError(fmt::format("{}: found results of {} and {}; required one type", where, to_string(type),
                                   to_string(tensors[i].type)));
    if (result.data != nullptr)
      copy.run(tensors[i].data.get(), result.data.get() + i * static_cast<std::size_t>(dims.after) * bytes);
  }
  return result;
}

Values evaluate_node(const KernelLibrary& library, const Node& node, const Values& inputs, const Context& context) {
  if (context.model != nullptr && !context.model->functions.empty()) {
    const std::string name = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
    const auto found = context.model->functions.find(name);
    if (found != context.model->functions.end()) return call_function(library, found->second, node, inputs, context);
  }
  if (node.domain.empty()) {
    if (node.op_type == "If") return run_if(library, node, inputs, context);
    if (node.op_type == "Loop") return run_loop(library, node, inputs, context);
    if (node.op_type == "Scan")
      return opset_of(node, context) < 9 ? run_batched_scan(library, node, inputs, context)
                                         : run_scan(library, node, inputs, context);
    if (auto values = evaluate_sequence_operator(library, node, inputs, context)) return std::move(*values);
  }
  return run_kernel(library, node, inputs, context);
}

Values run_graph(const KernelLibrary& library, const GraphBody& graph, const Values& inputs, const Context& context) {
  Names names(context.outer);
  for (const auto& [name, tensor] : graph.initializers) names.set(name, tensor);
  for (std::size_t i = 0; i < graph.inputs.size() && i < inputs.size(); ++i) names.set(graph.inputs[i], inputs[i]);
  const Context inner{context.model, context.opsets, &names, context.depth};
  const auto look_up = [&](const std::string& name, const std::string& who) {
    const Value* found = names.find(name);
    if (found == nullptr) throw InputError(fmt::format("{}: found no value of '{}'; required one", who, name));
    return *found;
  };
  for (const Node& node : graph.nodes) {
    Values arguments;
    for (const std::string& name : node.inputs)
      arguments.push_back(name.empty() ? Value() : look_up(name, describe(node)));
    Values results = evaluate_node(library, node, arguments, inner);
    if (results.size() < node.outputs.size())
      throw InputError(
          fmt::format("{}: found {} results; required {}", describe(node), results.size(), node.outputs.size()));
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (!node.outputs[i].empty()) names.set(node.outputs[i], std::move(results[i]));
  }
  Values outputs;
  for (const std::string& name : graph.outputs) outputs.push_back(look_up(name, "graph '" + graph.name + "'"));
  return outputs;
}

}  // namespace doppler::model
