#include "doppler/program/onnx/model_reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/program/onnx/convert.h"
#include "doppler/program/onnx/mapped_model.h"

namespace doppler::program {
namespace {

using onnx::TypeProto;

// This is the newest operator set whose changes we have read; libonnx 1.12 ends at 17, infer.cpp bridges the rest.
constexpr int kNewestOpset = 25;
// Functions that call functions multiply; no real model comes near.
constexpr std::size_t kMostNodes = 1'000'000;

// What was inferred stands; the file's own declaration fills the rest.
void merge_declared(TypeProto& type, const TypeProto& declared) {
  if (type.value_case() == TypeProto::VALUE_NOT_SET || (is_tensor(type) && !dims_of(type))) {
    const std::int32_t element = is_tensor(type) ? element_of(type) : 0;
    type = declared;
    if (element != 0 && is_tensor(type)) type.mutable_tensor_type()->set_elem_type(element);
    return;
  }
  const std::optional<Shape> known = dims_of(declared);
  std::optional<Shape> dims = dims_of(type);
  if (!is_tensor(type) || !known || !dims || known->size() != dims->size()) return;
  for (std::size_t i = 0; i < dims->size(); ++i)
    if ((*dims)[i] == kUnknown) (*dims)[i] = (*known)[i];
  set_dims(type, *dims);
}

// libonnx takes the target of a Reshape on trust; with another --dim than the exporter's it may not fit.
void check_elements(const std::string& where, const Operator& op, const onnx::NodeProto& node, const NodeInputs& inputs,
                    const Inferred& inferred) {
  if (!op.traits.keeps_elements || inputs.types.empty() || inputs.types[0] == nullptr) return;
  const TypeProto &from = *inputs.types[0], &to = inferred.outputs[0];
  if (!is_tensor(from) || !is_tensor(to) || elements(from) == elements(to)) return;
  throw InputError(fmt::format("{}: {} turns shape {} into {}; required as many elements", where, describe(node),
                               to_string(dims_of(from).value_or(Shape())), to_string(dims_of(to).value_or(Shape()))));
}

// Returns what --dim would have to name to make the type complete: symbols, or "tensor:axis" where a dimension has
// none.
std::vector<std::string> unknown_dims(const std::string& tensor, const TypeProto& type) {
  if (!dims_of(type)) return {tensor + ":0"};
  std::vector<std::string> keys;
  int axis = 0;
  for (const auto& dim : type.tensor_type().shape().dim()) {
    const bool known = dim.has_dim_value() && dim.dim_value() >= 0;
    if (!known) keys.push_back(dim.dim_param().empty() ? fmt::format("{}:{}", tensor, axis) : dim.dim_param());
    ++axis;
  }
  return keys;
}

}  // namespace

std::optional<ValueId> Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer)
    if (const auto found = scope->values.find(name); found != scope->values.end()) return found->second;
  return std::nullopt;
}

int Scope::opset(const onnx::NodeProto& node) const {
  const auto found = opsets->find(domain_of(node));
  return found == opsets->end() ? 1 : found->second;
}

ModelReader::ModelReader(Reading& reading, const std::map<std::string, Index>& dims) : reading_(reading), dims_(dims) {
  for (const onnx::FunctionProto& function : reading.model.functions()) {
    const std::string domain = function.domain() == "ai.onnx" ? "" : function.domain();
    functions_.emplace(domain.empty() ? function.name() : domain + "." + function.name(), &function);
    for (const auto& opset : function.opset_import())
      function_opsets_[&function][opset.domain() == "ai.onnx" ? "" : opset.domain()] =
          static_cast<int>(std::clamp<Index>(opset.version(), 1, kNewestOpset));
  }
}

void ModelReader::check_opsets() {
  for (const auto& opset : reading_.model.opset_import()) {
    const bool standard = opset.domain().empty() || opset.domain() == "ai.onnx";
    if (standard && (opset.version() < 1 || opset.version() > kNewestOpset))
      throw InputError(
          fmt::format("{}: found operator set {}; required 1 to {}", reading_.where, opset.version(), kNewestOpset));
    opsets_[standard ? "" : opset.domain()] = static_cast<int>(std::clamp<Index>(opset.version(), 1, 1 << 20));
  }
}

void ModelReader::run() {
  check_opsets();
  const onnx::GraphProto& graph = reading_.model.graph();
  if (graph.node_size() == 0) throw InputError(fmt::format("{}: found no nodes; required some", reading_.where));
  Scope scope{.opsets = &opsets_};
  bind_initializers(graph, scope);
  declare(graph, scope);
  bind_inputs(graph, scope);
  reading_.ops_of_node.resize(static_cast<std::size_t>(graph.node_size()));
  read_graph(graph, scope, true);
  reading_.names = scope.values;
  for (const auto& output : graph.output()) {
    const std::optional<ValueId> id = scope.find(output.name());
    if (!id)
      throw InputError(fmt::format("{}: the graph's output '{}' is written by no node; required one", reading_.where,
                                   output.name()));
    reading_.outputs.push_back(*id);
  }
  if (unknown_operators_.empty()) return;
  std::string names;
  for (const auto& [name, count] : unknown_operators_)
    names += fmt::format("{}'{}' ({})", names.empty() ? "" : ", ", name, count);
  warn(fmt::format("no formula for operators {}; they cost the bytes that they read and write", names));
}

void ModelReader::declare(const onnx::GraphProto& graph, Scope& scope) const {
  for (const auto& info : graph.value_info()) scope.declared[info.name()] = &info.type();
  for (const auto& info : graph.output()) {
    scope.declared.try_emplace(info.name(), &info.type());
    scope.used.insert(info.name());
  }
  for (const onnx::NodeProto& node : graph.node())
    for (std::string& name : names_read(node)) scope.used.insert(std::move(name));
}

void ModelReader::bind_inputs(const onnx::GraphProto& graph, Scope& scope) {
  const std::set<std::string>& weights = reading_.weights;
  std::vector<std::string> missing;  // names for --dim
  std::string first;                 // input that lacks a size
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (scope.values.contains(input.name())) continue;  // its default is an initialiser
    ModelValue value{.name = input.name(), .type = input.type()};
    apply_dims(input.name(), value.type);
    if (weights.contains(input.name())) {
      value.is_static = true;
      value.stored = bytes_of(value.type);
      value.parameters = {add_parameter(input.name(), value.type)};
    } else if (is_tensor(value.type) && scope.used.contains(input.name()) && !is_complete(value.type)) {
      if (missing.empty()) first = input.name();
      for (std::string& key : unknown_dims(input.name(), value.type))
        if (std::find(missing.begin(), missing.end(), key) == missing.end()) missing.push_back(std::move(key));
    }
    if (is_complete(value.type) && is_tensor(value.type))
      element_count(*dims_of(value.type), fmt::format("{}: input '{}'", reading_.where, input.name()));
    scope.values[input.name()] = add_value(std::move(value));
  }
  if (missing.empty()) return;
  std::string flags;
  for (const std::string& key : missing) flags += fmt::format(" --dim {}=N", key);
  throw InputError(
      fmt::format("{}: input '{}' has a dimension of unknown size; required{}", reading_.where, first, flags));
}

void ModelReader::bind_initializers(const onnx::GraphProto& graph, Scope& scope) {
  const auto bind = [&](const std::string& name, ModelValue value) {
    value.name = name;
    value.is_static = true;
    value.stored = bytes_of(value.type);
    if (is_weight_type(element_of(value.type))) value.parameters = {add_parameter(name, value.type)};
    if (!scope.values.emplace(name, add_value(std::move(value))).second)
      throw InputError(fmt::format("{}: found two initializers '{}'; required unique names", reading_.where, name));
  };
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    check_data(tensor, fmt::format("{}: initializer '{}'", reading_.where, tensor.name()));
    const Shape dims(tensor.dims().begin(), tensor.dims().end());
    ModelValue value{.name = {}, .type = tensor_type(tensor.data_type(), dims), .constant = read_constant(tensor)};
    value.initializer = &tensor;
    bind(tensor.name(), std::move(value));
  }
  for (const onnx::SparseTensorProto& sparse : graph.sparse_initializer()) {
    const std::string& name = sparse.values().name();
    const std::string what = fmt::format("{}: sparse initializer '{}'", reading_.where, name);
    check_data(sparse.values(), what);
    const Shape dims(sparse.dims().begin(), sparse.dims().end());
    for (const Index size : dims)
      if (size < 0)
        throw InputError(fmt::format("{}: found shape {}; required no negative size", what, to_string(dims)));
    element_count(dims, what);
    bind(name, {.name = {}, .type = tensor_type(sparse.values().data_type(), dims)});
  }
}

void ModelReader::read_graph(const onnx::GraphProto& graph, Scope& scope, bool main) {
  const auto known = [&](const std::string& name) { return scope.find(name).has_value(); };
  for (const int index : sort_nodes(reading_.where, graph.node(), known)) {
    const auto first = static_cast<std::uint32_t>(reading_.ops.size());
    read_node(graph.node(index), scope);
    if (main)
      reading_.ops_of_node[static_cast<std::size_t>(index)] = {first, static_cast<std::uint32_t>(reading_.ops.size())};
  }
}

void ModelReader::read_node(const onnx::NodeProto& node, Scope& scope) {
  if (++nodes_read_ > kMostNodes)
    throw InputError(fmt::format("{}: more than {} nodes after functions are written out; required fewer",
                                 reading_.where, kMostNodes));
  const Operator& op = operator_of(node);
  if (op.is == OperatorClass::constant) return bind_constant(node, scope);
  if (!read_control_flow(op, node, scope) && !read_function(node, scope)) read_operator(op, node, scope);
}

void ModelReader::bind_constant(const onnx::NodeProto& node, Scope& scope) {
  if (node.output_size() != 1)
    throw InputError(
        fmt::format("{}: {} has {} outputs; required 1", reading_.where, describe(node), node.output_size()));
  ConstantNode constant;
  try {
    constant = read_constant_node(node);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", reading_.where, error.what()));
  }
  ModelValue value{.name = node.output(0), .type = constant.type, .is_static = true, .constant = constant.value};
  value.stored = bytes_of(value.type);
  // Some exporters keep weights here; a lone number is part of the arithmetic.
  if (is_weight_type(element_of(value.type)) && elements(value.type) > 1)
    value.parameters = {add_parameter(node.output(0), value.type)};
  const ValueId id = add_value(std::move(value));
  scope.values[node.output(0)] = id;
  add_static_op(operator_of(node), node, {}, {id}, scope);
}

std::vector<ValueId> ModelReader::inputs_of(const onnx::NodeProto& node, const Scope& scope) const {
  std::vector<ValueId> inputs;
  for (const std::string& name : node.input()) {
    const std::optional<ValueId> id = name.empty() ? kNone : scope.find(name);
    if (!id)
      throw InputError(fmt::format("{}: {} reads tensor '{}'; required a node, input or initializer of that name",
                                   reading_.where, describe(node), name));
    inputs.push_back(*id);
  }
  return inputs;
}

NodeInputs ModelReader::facts_of(const std::vector<ValueId>& inputs) const {
  NodeInputs facts;
  for (const ValueId id : inputs) {
    const ModelValue* value = id == kNone ? nullptr : &reading_.values[id];
    facts.types.push_back(value != nullptr ? &value->type : nullptr);
    facts.values.push_back(value != nullptr && value->constant ? &*value->constant : nullptr);
  }
  return facts;
}

void ModelReader::read_operator(const Operator& op, const onnx::NodeProto& node, Scope& scope) {
  const std::vector<ValueId> inputs = inputs_of(node, scope);
  const NodeInputs facts = facts_of(inputs);
  if (node.output_size() == 1 && !facts.types.empty() && facts.types[0] != nullptr)
    if (std::optional<Constant> shape = fold_type(op, node, *facts.types[0])) {
      ModelValue value{.name = node.output(0), .type = tensor_type(shape->element, shape->dims), .is_static = true};
      value.constant = std::move(shape);
      scope.values[node.output(0)] = add_value(std::move(value));
      return;
    }
  Inferred inferred = infer(op, node, inputs, scope);
  compute_types(op, node, inferred, inputs, scope);
  complete_types(node, inferred, inputs, scope);
  check_elements(reading_.where, op, node, facts, inferred);
  if (is_static(op, inputs)) return bind_static(op, node, inputs, inferred.outputs, scope);
  OpCost cost;
  try {
    cost = cost_of(op, node, facts.types, inferred.outputs);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", reading_.where, error.what()));
  }
  add_op(op, node, inputs, inferred.outputs, cost, scope);
}

void ModelReader::bind_static(const Operator& op, const onnx::NodeProto& node, const std::vector<ValueId>& inputs,
                              const std::vector<TypeProto>& types, Scope& scope) {
  const NodeInputs facts = facts_of(inputs);
  bool all_known = true;
  std::vector<std::uint32_t> parameters;
  Bytes held = 0;
  for (const ValueId id : inputs) {
    if (id == kNone) continue;
    const ModelValue& input = reading_.values[id];
    all_known = all_known && input.constant.has_value();
    parameters.insert(parameters.end(), input.parameters.begin(), input.parameters.end());
    held += input.stored;
  }
  std::sort(parameters.begin(), parameters.end());
  parameters.erase(std::unique(parameters.begin(), parameters.end()), parameters.end());
  std::optional<std::vector<Constant>> folded;
  if (all_known) folded = fold(op, node, facts.values, types);
  std::vector<ValueId> outputs;
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) {
      outputs.push_back(kNone);
      continue;
    }
    const auto at = static_cast<std::size_t>(i);
    ModelValue value{.name = node.output(i), .type = types[at], .is_static = true};
    value.stored = op.traits.widens ? std::min(held, bytes_of(types[at])) : bytes_of(types[at]);
    value.parameters = parameters;
    if (folded) value.constant = std::move((*folded)[at]);
    outputs.push_back(add_value(std::move(value)));
    scope.values[node.output(i)] = outputs.back();
  }
  add_static_op(op, node, inputs, std::move(outputs), scope);
}

void ModelReader::add_static_op(const Operator& rules, const onnx::NodeProto& node, std::vector<ValueId> inputs,
                                std::vector<ValueId> outputs, const Scope& scope) {
  ModelOp op{
      .node = &node, .rules = &rules, .name = scope.prefix + node.name(), .inputs = {}, .outputs = {}, .cost = {}};
  op.inputs = std::move(inputs);
  op.outputs = std::move(outputs);
  op.opset = scope.opset(node);
  reading_.static_ops.push_back(std::move(op));
}

void ModelReader::add_op(const Operator& rules, const onnx::NodeProto& node, std::vector<ValueId> inputs,
                         const std::vector<TypeProto>& types, const OpCost& cost, Scope& scope) {
  const auto id = static_cast<std::uint32_t>(reading_.ops.size());
  ModelOp op{.node = &node, .rules = &rules, .name = {}, .inputs = std::move(inputs), .outputs = {}, .cost = cost};
  op.opset = scope.opset(node);
  op.name = scope.prefix + (!node.name().empty() || node.output_size() == 0 ? node.name() : node.output(0));
  if (op.name.empty()) op.name = fmt::format("{}_{}", node.op_type(), id);
  op.view = node.output_size() > 0 && !node.output(0).empty() && !op.inputs.empty() && op.inputs[0] != kNone &&
            is_view(rules, node, reading_.values[op.inputs[0]].type) && !reading_.values[op.inputs[0]].is_static;
  if (!cost.known) ++unknown_operators_[operator_name(node)];
  if (op.view) op.cost = {};
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) {
      op.outputs.push_back(kNone);
      continue;
    }
    op.outputs.push_back(
        add_value({.name = node.output(i), .type = types[static_cast<std::size_t>(i)], .producer = id}));
    scope.values[node.output(i)] = op.outputs.back();
  }
  reading_.ops.push_back(std::move(op));
}

ValueId ModelReader::add_value(ModelValue value) {
  reading_.values.push_back(std::move(value));
  return static_cast<ValueId>(reading_.values.size() - 1);
}

std::uint32_t ModelReader::add_parameter(std::string name, const TypeProto& type) {
  reading_.parameters.push_back({std::move(name), elements(type), bytes_of(type)});
  return static_cast<std::uint32_t>(reading_.parameters.size() - 1);
}

std::optional<Index> ModelReader::given(const std::string& key) {
  const auto found = dims_.find(key);
  if (found == dims_.end()) return std::nullopt;
  dims_used_.insert(key);
  return found->second;
}

void ModelReader::apply_dims(const std::string& name, TypeProto& type) {
  if (!is_tensor(type) && type.value_case() != TypeProto::VALUE_NOT_SET) return;
  if (!dims_of(type)) {  // the rank is what was given
    Shape dims;
    while (const auto size = given(fmt::format("{}:{}", name, dims.size()))) dims.push_back(*size);
    if (!dims.empty()) set_dims(type, dims);
    return;
  }
  if (!type.has_tensor_type()) return;
  auto* shape = type.mutable_tensor_type()->mutable_shape();
  for (int i = 0; i < shape->dim_size(); ++i) {
    std::optional<Index> size;
    if (shape->dim(i).has_dim_param()) size = given(shape->dim(i).dim_param());
    if (const auto named = given(fmt::format("{}:{}", name, i))) size = named;
    if (size) shape->mutable_dim(i)->set_dim_value(*size);
  }
}

bool ModelReader::is_static(const Operator& op, const std::vector<ValueId>& inputs) const {
  return !inputs.empty() && op.is != OperatorClass::random &&
         std::all_of(inputs.begin(), inputs.end(),
                     [&](ValueId id) { return id == kNone || reading_.values[id].is_static; });
}

Inferred ModelReader::infer(const Operator& op, const onnx::NodeProto& node, const std::vector<ValueId>& inputs,
                            const Scope& scope) {
  try {
    Inferred inferred = infer_types(op, node, scope.opset(node), facts_of(inputs));
    merge_declarations(node, inferred, scope);
    return inferred;
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", reading_.where, error.what()));
  }
}

void ModelReader::merge_declarations(const onnx::NodeProto& node, Inferred& inferred, const Scope& scope) {
  for (int i = 0; i < node.output_size(); ++i) {
    const std::string& name = node.output(i);
    TypeProto& type = inferred.outputs[static_cast<std::size_t>(i)];
    if (name.empty()) continue;
    const auto declared = scope.declared.find(name);
    if (!is_complete(type) && declared != scope.declared.end()) {
      TypeProto bound = *declared->second;
      apply_dims(name, bound);
      merge_declared(type, bound);
      if (is_complete(type) && !inferred.complaint.empty())
        warn(fmt::format("{}: {}; the declared shape of '{}' counts", describe(node), inferred.complaint, name));
    }
    if (!is_complete(type)) apply_dims(name, type);
  }
}

bool ModelReader::compute_constants(const std::vector<ValueId>& inputs) {
  bool more = false;
  for (const ValueId id : inputs) {
    if (id == kNone || !reading_.values[id].is_static || reading_.values[id].constant ||
        !is_tensor(reading_.values[id].type) || elements(reading_.values[id].type) > kMostFolded)
      continue;
    const std::optional<model::Tensor> value = static_values_.find(id);
    if (!value) continue;
    reading_.values[id].constant = read_constant(model::to_proto(*value));
    more = more || reading_.values[id].constant;
  }
  return more;
}

void ModelReader::compute_types(const Operator& op, const onnx::NodeProto& node, Inferred& inferred,
                                const std::vector<ValueId>& inputs, const Scope& scope) {
  const auto incomplete = [&] {
    for (int i = 0; i < node.output_size(); ++i)
      if (!is_complete(inferred.outputs[static_cast<std::size_t>(i)]) && scope.used.contains(node.output(i)))
        return true;
    return false;
  };
  if (!incomplete()) return;
  try {
    if (compute_constants(inputs)) inferred = infer(op, node, inputs, scope);
    if (!incomplete() || !is_static(op, inputs)) return;
    const auto outputs = static_values_.compute(node, scope.opset(node), inputs);
    for (std::size_t i = 0; outputs && i < std::min(outputs->size(), inferred.outputs.size()); ++i)
      if ((*outputs)[i].kind == model::Value::Kind::tensor) {
        const model::TensorType& type = (*outputs)[i].tensor.type;
        inferred.outputs[i] = tensor_type(static_cast<std::int32_t>(type.element), type.shape);
      }
  } catch (const InputError& error) {
    if (inferred.complaint.empty()) inferred.complaint = error.what();
  }
}

void ModelReader::complete_types(const onnx::NodeProto& node, Inferred& inferred, const std::vector<ValueId>& inputs,
                                 const Scope& scope) {
  for (int i = 0; i < node.output_size(); ++i) {
    const std::string& name = node.output(i);
    TypeProto& type = inferred.outputs[static_cast<std::size_t>(i)];
    if (name.empty()) continue;
    if (!is_complete(type)) {
      const auto found = scope.declared.find(name);
      const TypeProto* declared = found == scope.declared.end() ? nullptr : found->second;
      if (scope.used.contains(name)) refuse_unknown(node, name, type, declared, inferred.complaint);
      type = tensor_type(onnx::TensorProto::FLOAT, Shape{0});  // nobody reads it
    }
    if (is_tensor(type) && element_of(type) == 0 && !inputs.empty() && inputs[0] != kNone)
      type.mutable_tensor_type()->set_elem_type(element_of(reading_.values[inputs[0]].type));
    if (is_tensor(type))
      element_count(*dims_of(type), fmt::format("{}: tensor '{}' of {}", reading_.where, name, describe(node)));
  }
}

void ModelReader::refuse_unknown(const onnx::NodeProto& node, const std::string& tensor, const TypeProto& type,
                                 const TypeProto* declared, const std::string& complaint) const {
  const std::optional<Shape> dims = dims_of(type);
  if (!dims && !complaint.empty())
    throw InputError(
        fmt::format("{}: {}: {}; required inputs and attributes that fit", reading_.where, describe(node), complaint));
  if (!dims)
    throw InputError(fmt::format("{}: tensor '{}' of {} has no shape; required one; try --dim {}:0=N and so on",
                                 reading_.where, tensor, describe(node), tensor));
  const auto axis = std::find(dims->begin(), dims->end(), kUnknown) - dims->begin();
  std::string key = fmt::format("{}:{}", tensor, axis);
  if (declared != nullptr && declared->tensor_type().shape().dim_size() > axis) {
    const auto& dim = declared->tensor_type().shape().dim(static_cast<int>(axis));
    if (dim.has_dim_param() && !dim.dim_param().empty()) key = dim.dim_param();
  }
  throw InputError(fmt::format("{}: dimension {} of tensor '{}' of {} has no size; required one; try --dim {}=N",
                               reading_.where, axis, tensor, describe(node), key));
}

void ModelReader::refuse_unused_dims() const {
  constexpr std::size_t kLongestInputs = 200;  // characters of names
  for (const auto& [key, size] : dims_) {
    if (dims_used_.contains(key)) continue;
    std::set<std::string> symbols;
    for (const auto& input : reading_.model.graph().input())
      for (const auto& dim : input.type().tensor_type().shape().dim())
        if (dim.has_dim_param() && !dim.dim_param().empty()) symbols.insert("'" + dim.dim_param() + "'");
    std::string known;
    for (const std::string& symbol : symbols) known += (known.empty() ? "" : ", ") + symbol;
    // No dimension has a name: the inputs have numbers.
    std::string inputs;
    const std::set<std::string> weights = weight_inputs(reading_.model.graph());
    for (const auto& input : reading_.model.graph().input())
      if (known.empty() && !weights.contains(input.name()) && !inputs.ends_with("…"))
        inputs +=
            inputs.size() < kLongestInputs ? fmt::format("{}'{}:0'", inputs.empty() ? "" : ", ", input.name()) : ", …";
    throw InputError(fmt::format(
        "{}: --dim {}={} names no dimension; required {}tensor:axis", reading_.where, key, size,
        known.empty() ? fmt::format("no name, as all sizes are fixed, but an input, such as {}, as ", inputs)
                      : fmt::format("one of {} or ", known)));
  }
}

Reading read_model(const std::string& where, std::string_view content, const std::map<std::string, Index>& dims,
                   bool mapped) {
  constexpr std::size_t kMostBytes = (std::size_t{1} << 31) - 1;  // protobuf's own limit
  if (content.size() > kMostBytes)
    throw InputError(fmt::format("{}: found {}; required at most {} (keep weights as external data)", where,
                                 format_bytes(content.size()), format_bytes(kMostBytes)));
  onnx::ModelProto model;
  if (!(mapped ? parse_mapped(content, model) : model.ParseFromArray(content.data(), static_cast<int>(content.size()))))
    throw InputError(fmt::format("{}: truncated or damaged protobuf; required an ONNX model", where));
  if (!model.has_graph()) throw InputError(fmt::format("{}: found no graph; required an ONNX model", where));
  for (const auto& [key, size] : dims)
    if (size < 1) throw InputError(fmt::format("--dim {}: found {}; required at least 1", key, size));
  Reading reading;
  reading.where = where;
  reading.model = std::move(model);
  reading.weights = weight_inputs(reading.model.graph());
  ModelReader reader(reading, dims);
  reader.run();
  reader.refuse_unused_dims();
  return reading;
}

Reading read_again(const std::string& where, onnx::ModelProto model, const std::map<std::string, Index>& dims,
                   std::set<std::string> weights) {
  Reading reading;
  reading.where = where;
  reading.model = std::move(model);
  reading.weights = std::move(weights);
  ModelReader(reading, dims).run();
  return reading;
}

}  // namespace doppler::program
