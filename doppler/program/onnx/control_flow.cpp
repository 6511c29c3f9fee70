#include <algorithm>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/program/onnx/model_reader.h"

namespace doppler::program {
namespace {

using onnx::TypeProto;

// Functions may call functions; protobuf bounds how deep bodies nest, but not that.
constexpr std::size_t kDeepest = 64;

const onnx::GraphProto& body_of(const std::string& where, const onnx::NodeProto& node, std::string_view name) {
  const onnx::AttributeProto* attribute = find_attribute(node, name);
  if (attribute == nullptr || !attribute->has_g())
    throw InputError(fmt::format("{}: {} has no '{}'; required a graph", where, describe(node), name));
  return attribute->g();
}

TypeProto scalar(std::int32_t element) { return tensor_type(element, Shape{}); }

// Returns the type of `count` slices of `type`, stacked along `axis`.
TypeProto stacked(const TypeProto& type, Index count, Index axis) {
  if (!is_tensor(type)) return type;
  Shape dims = dims_of(type).value_or(Shape());
  const auto rank = static_cast<Index>(dims.size()) + 1;
  const Index at = std::clamp<Index>(axis < 0 ? axis + rank : axis, 0, rank - 1);
  dims.insert(dims.begin() + at, count);
  return tensor_type(element_of(type), dims);
}

bool heavier(const OpCost& a, const OpCost& b) {
  return std::pair(a.flops, a.read + a.written) > std::pair(b.flops, b.read + b.written);
}

}  // namespace

bool ModelReader::read_control_flow(const Operator& op, const onnx::NodeProto& node, Scope& scope) {
  if (op.is != OperatorClass::branch && op.is != OperatorClass::loop && op.is != OperatorClass::scan) return false;
  if (++depth_ > kDeepest)
    throw InputError(
        fmt::format("{}: {} nests deeper than {}; required less", reading_.where, describe(node), kDeepest));
  if (op.is == OperatorClass::branch)
    read_if(node, scope);
  else if (op.is == OperatorClass::loop)
    read_loop(node, scope);
  else
    read_scan(node, scope);
  --depth_;
  return true;
}

// Reads a body as if its nodes were part of the graph, then adds them up and takes them out again.
ModelReader::Body ModelReader::collapse(const onnx::NodeProto& node, const onnx::GraphProto& graph,
                                        const std::vector<TypeProto>& input_types, const Scope& scope) {
  const std::size_t first_op = reading_.ops.size(), first_static = reading_.static_ops.size();
  const auto first_value = static_cast<ValueId>(reading_.values.size());
  Scope inner{.outer = &scope, .opsets = scope.opsets, .prefix = scope.prefix};
  bind_initializers(graph, inner);
  declare(graph, inner);
  for (int i = 0; i < graph.input_size(); ++i) {
    const onnx::ValueInfoProto& input = graph.input(i);
    const auto at = static_cast<std::size_t>(i);
    ModelValue value{.name = input.name(), .type = at < input_types.size() ? input_types[at] : input.type()};
    if (!is_complete(value.type))
      throw InputError(fmt::format("{}: {}: input '{}' of its body has no shape; required one", reading_.where,
                                   describe(node), input.name()));
    inner.values[input.name()] = add_value(std::move(value));
  }
  read_graph(graph, inner, false);
  Body body;
  for (const auto& output : graph.output()) {
    const std::optional<ValueId> id = inner.find(output.name());
    if (!id || *id == kNone)
      throw InputError(fmt::format("{}: {}: output '{}' of its body is written by no node; required one",
                                   reading_.where, describe(node), output.name()));
    body.outputs.push_back(*id);
    if (*id < first_value) body.reads.push_back(*id);
  }
  for (std::size_t i = first_op; i < reading_.ops.size(); ++i) {
    body.cost += reading_.ops[i].cost;
    for (const ValueId id : reading_.ops[i].inputs)
      if (id != kNone && (id < first_value || reading_.values[id].is_static)) body.reads.push_back(id);
  }
  body.cost.known = true;  // operators without a formula were counted when they were read
  reading_.ops.resize(first_op);
  reading_.static_ops.resize(first_static);
  return body;
}

void ModelReader::bind_outputs(const onnx::NodeProto& node, const std::vector<ValueId>& outputs, Scope& scope) const {
  if (static_cast<int>(outputs.size()) < node.output_size())
    throw InputError(fmt::format("{}: {} has {} outputs, its body {}; required as many", reading_.where, describe(node),
                                 node.output_size(), outputs.size()));
  for (int i = 0; i < node.output_size(); ++i)
    if (!node.output(i).empty()) scope.values[node.output(i)] = outputs[static_cast<std::size_t>(i)];
}

void ModelReader::finish_control_flow(const onnx::NodeProto& node, std::vector<ValueId> inputs, const Body& body,
                                      std::vector<TypeProto> types, Scope& scope) {
  if (static_cast<int>(types.size()) < node.output_size())
    throw InputError(fmt::format("{}: {} has {} outputs, its body {}; required as many", reading_.where, describe(node),
                                 node.output_size(), types.size()));
  Inferred inferred{std::move(types), {}};
  inferred.outputs.resize(static_cast<std::size_t>(node.output_size()));
  merge_declarations(node, inferred, scope);
  complete_types(node, inferred, {}, scope);
  for (const ValueId id : body.reads)
    if (std::find(inputs.begin(), inputs.end(), id) == inputs.end()) inputs.push_back(id);
  add_op(operator_of(node), node, std::move(inputs), inferred.outputs, body.cost, scope);
  reading_.ops.back().whole = true;
  reading_.ops.back().view = false;
}

void ModelReader::read_if(const onnx::NodeProto& node, Scope& scope) {
  const std::vector<ValueId> inputs = inputs_of(node, scope);
  const auto& then_graph = body_of(reading_.where, node, "then_branch");
  const auto& else_graph = body_of(reading_.where, node, "else_branch");
  if (inputs.size() != 1 || inputs[0] == kNone)
    throw InputError(
        fmt::format("{}: {} has {} inputs; required a condition", reading_.where, describe(node), inputs.size()));
  // Conditions on shapes are known now: the branch that is taken is part of the graph.
  if (const std::optional<Constant>& condition = reading_.values[inputs[0]].constant;
      condition && condition->values.size() == 1) {
    const onnx::GraphProto& taken = condition->values[0] != 0 ? then_graph : else_graph;
    Scope inner{.outer = &scope, .opsets = scope.opsets, .prefix = scope.prefix};
    bind_initializers(taken, inner);
    declare(taken, inner);
    read_graph(taken, inner, false);
    std::vector<ValueId> outputs;
    for (const auto& output : taken.output()) {
      const std::optional<ValueId> id = inner.find(output.name());
      if (!id)
        throw InputError(fmt::format("{}: {}: output '{}' of its body is written by no node; required one",
                                     reading_.where, describe(node), output.name()));
      outputs.push_back(*id);
    }
    return bind_outputs(node, outputs, scope);
  }
  // A branch for other sizes than these may not even fit them; then it is not the one that is taken.
  std::optional<Body> bodies[2];
  std::optional<InputError> errors[2];
  const std::size_t first_op = reading_.ops.size(), first_static = reading_.static_ops.size(), depth = depth_;
  for (const int branch : {0, 1}) {
    try {
      bodies[branch] = collapse(node, branch == 0 ? then_graph : else_graph, {}, scope);
    } catch (const InputError& error) {
      errors[branch] = error;
      reading_.ops.resize(first_op);
      reading_.static_ops.resize(first_static);
      depth_ = depth;
    }
  }
  if (errors[0] && errors[1]) throw InputError(*errors[0]);
  for (const int branch : {0, 1})
    if (errors[branch]) {
      std::string_view why = errors[branch]->what();
      if (why.starts_with(reading_.where + ": ")) why.remove_prefix(reading_.where.size() + 2);
      warn(fmt::format("{}: one branch does not fit these sizes and does not count: {}", describe(node), why));
      bodies[branch] = bodies[1 - branch];
    }
  Body& body = *bodies[0];
  const Body& other = *bodies[1];
  std::vector<TypeProto> types;
  for (std::size_t i = 0; i < std::min(body.outputs.size(), other.outputs.size()); ++i) {
    const TypeProto &one = reading_.values[body.outputs[i]].type, &two = reading_.values[other.outputs[i]].type;
    types.push_back(elements(two) > elements(one) ? two : one);
  }
  if (heavier(other.cost, body.cost)) body.cost = other.cost;
  body.reads.insert(body.reads.end(), other.reads.begin(), other.reads.end());
  finish_control_flow(node, inputs, body, std::move(types), scope);
}

std::optional<Index> ModelReader::turns(const onnx::NodeProto& node, ValueId count) {
  if (!node.name().empty())
    if (const auto size = given(node.name())) return size;
  if (count == kNone) return std::nullopt;
  const std::optional<Constant>& constant = reading_.values[count].constant;
  if (!constant || constant->values.size() != 1) return std::nullopt;
  constexpr Index kForever = Index{1} << 31;  // how exporters write a while loop
  const Index value = constant->as_index(0);
  return value >= 0 && value < kForever ? std::optional(value) : std::nullopt;
}

void ModelReader::read_loop(const onnx::NodeProto& node, Scope& scope) {
  const std::vector<ValueId> inputs = inputs_of(node, scope);
  const onnx::GraphProto& graph = body_of(reading_.where, node, "body");
  const std::size_t states = inputs.size() > 2 ? inputs.size() - 2 : 0;
  if (static_cast<std::size_t>(graph.input_size()) != states + 2)
    throw InputError(fmt::format("{}: {} hands {} values to a body of {} inputs; required as many", reading_.where,
                                 describe(node), states + 2, graph.input_size()));
  std::vector<TypeProto> types = {scalar(onnx::TensorProto::INT64), scalar(onnx::TensorProto::BOOL)};
  for (std::size_t i = 0; i < states; ++i)
    types.push_back(inputs[i + 2] == kNone ? graph.input(static_cast<int>(i) + 2).type()
                                           : reading_.values[inputs[i + 2]].type);
  const std::optional<Index> count = turns(node, inputs.empty() ? kNone : inputs[0]);
  if (!count)
    warn(fmt::format("{}: the number of its turns is not known and counts as 1; --dim {}=N sets it", describe(node),
                     node.name()));
  Body body = collapse(node, graph, types, scope);
  body.cost = body.cost.times(static_cast<double>(count.value_or(1)));
  std::vector<TypeProto> outputs;
  for (std::size_t i = 1; i < body.outputs.size(); ++i) {  // the first is the condition
    const ModelValue& value = reading_.values[body.outputs[i]];
    outputs.push_back(i <= states ? value.type : stacked(value.type, count.value_or(1), 0));
    if (i <= states && is_tensor(value.type) && dims_of(value.type) != dims_of(types[i + 1]))
      warn(fmt::format("{}: '{}' changes its shape from turn to turn; every turn counts like the first", describe(node),
                       graph.input(static_cast<int>(i) + 1).name()));
  }
  finish_control_flow(node, inputs, body, std::move(outputs), scope);
}

void ModelReader::read_scan(const onnx::NodeProto& node, Scope& scope) {
  const std::vector<ValueId> inputs = inputs_of(node, scope);
  const onnx::GraphProto& graph = body_of(reading_.where, node, "body");
  const Index scanned = int_attribute(node, "num_scan_inputs", 0);
  constexpr int kBatchless = 9;  // before, Scan had a batch dimension and a first input of lengths
  const std::size_t skipped = scope.opset(node) < kBatchless ? 1 : 0;
  const auto given_inputs = static_cast<Index>(inputs.size() - std::min(inputs.size(), skipped));
  if (scanned < 1 || scanned > given_inputs || given_inputs != graph.input_size())
    throw InputError(fmt::format("{}: {} scans {} of {} inputs with a body of {}; required as many", reading_.where,
                                 describe(node), scanned, given_inputs, graph.input_size()));
  const auto states = static_cast<std::size_t>(given_inputs - scanned);
  const std::vector<Index> axes = ints_attribute(node, "scan_input_axes").value_or(std::vector<Index>());
  std::vector<TypeProto> types;
  Index count = 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(given_inputs); ++i) {
    const ValueId id = inputs[i + skipped];
    Shape dims = id == kNone ? Shape() : dims_of(reading_.values[id].type).value_or(Shape());
    const std::int32_t element = id == kNone ? 0 : element_of(reading_.values[id].type);
    if (skipped > 0 && !dims.empty()) dims.erase(dims.begin());
    if (i >= states) {
      Index axis = i - states < axes.size() ? axes[i - states] : 0;
      if (axis < 0) axis += static_cast<Index>(dims.size());
      if (axis < 0 || axis >= static_cast<Index>(dims.size()))
        throw InputError(fmt::format("{}: {} scans axis {} of {}; required one of its axes", reading_.where,
                                     describe(node), axis, to_string(dims)));
      count = dims[static_cast<std::size_t>(axis)];
      dims.erase(dims.begin() + axis);
    }
    types.push_back(tensor_type(element, dims));
  }
  Body body = collapse(node, graph, types, scope);
  body.cost = body.cost.times(static_cast<double>(count));
  std::vector<TypeProto> outputs;
  const std::vector<Index> out_axes = ints_attribute(node, "scan_output_axes").value_or(std::vector<Index>());
  for (std::size_t i = 0; i < body.outputs.size(); ++i) {
    const TypeProto& type = reading_.values[body.outputs[i]].type;
    const Index axis = i >= states && i - states < out_axes.size() ? out_axes[i - states] : 0;
    outputs.push_back(i < states ? type : stacked(type, count, axis));
  }
  finish_control_flow(node, inputs, body, std::move(outputs), scope);
}

bool ModelReader::read_function(const onnx::NodeProto& node, Scope& scope) {
  const auto found = functions_.find(operator_name(node));
  if (found == functions_.end()) return false;
  const onnx::FunctionProto& function = *found->second;
  if (++depth_ > kDeepest)
    throw InputError(
        fmt::format("{}: {} calls deeper than {}; required no recursion", reading_.where, describe(node), kDeepest));
  const std::vector<ValueId> inputs = inputs_of(node, scope);
  Scope inner{.outer = nullptr, .opsets = &function_opsets_[&function]};
  inner.prefix = scope.prefix + node.name() + "/";
  for (int i = 0; i < function.input_size(); ++i)
    inner.values[function.input(i)] = i < static_cast<int>(inputs.size()) ? inputs[static_cast<std::size_t>(i)] : kNone;
  Nodes nodes;
  for (const onnx::NodeProto& original : function.node()) {
    onnx::NodeProto* copy = nodes.Add();
    *copy = original;
    for (int i = 0; i < copy->attribute_size(); ++i) {
      const std::string parameter = copy->attribute(i).ref_attr_name();
      if (parameter.empty()) continue;
      const onnx::AttributeProto* argument = find_attribute(node, parameter);
      if (argument == nullptr) {
        copy->mutable_attribute()->DeleteSubrange(i--, 1);
        continue;
      }
      const std::string name = copy->attribute(i).name();
      *copy->mutable_attribute(i) = *argument;
      copy->mutable_attribute(i)->set_name(name);
    }
  }
  for (const onnx::NodeProto& inside : nodes)
    for (std::string& name : names_read(inside)) inner.used.insert(std::move(name));
  inner.used.insert(function.output().begin(), function.output().end());
  const auto known = [&](const std::string& name) { return inner.find(name).has_value(); };
  for (const int index : sort_nodes(reading_.where, nodes, known)) {
    reading_.inlined.push_back(nodes[index]);
    read_node(reading_.inlined.back(), inner);
  }
  std::vector<ValueId> outputs;
  for (const std::string& name : function.output()) {
    const std::optional<ValueId> id = inner.find(name);
    if (!id)
      throw InputError(fmt::format("{}: function '{}' has output '{}', which no node writes; required one",
                                   reading_.where, function.name(), name));
    outputs.push_back(*id);
  }
  bind_outputs(node, outputs, scope);
  --depth_;
  return true;
}

}  // namespace doppler::program
