#include "doppler/kernels/onnx/model_kernels.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/base/mapped_file.h"
#include "doppler/kernels/array.h"
#include "doppler/kernels/onnx/model_values.h"
#include "doppler/kernels/onnx/tensor_npy.h"

namespace doppler::model {
namespace {

using Origin = RunnableModel::Origin;

std::size_t round_up(std::size_t bytes) {
  return (bytes + AlignedBytes::kAlignment - 1) / AlignedBytes::kAlignment * AlignedBytes::kAlignment;
}

std::byte* scratch_of_thread(std::size_t bytes) {
  thread_local AlignedBytes memory;
  if (memory.size() < bytes) memory = AlignedBytes(bytes);
  return memory.data();
}

// The number of a tensor among those that an op of the graph reads.
std::int32_t position(std::span<const TensorId> tensors, TensorId tensor) {
  const auto found = std::find(tensors.begin(), tensors.end(), tensor);
  DOPPLER_CHECK(found != tensors.end(), "an op that reads a tensor which the graph does not know");
  return static_cast<std::int32_t>(found - tensors.begin());
}

// The tensors of the graph by value: an op's tensors are its outputs in order, without those that are absent.
std::vector<TensorId> tensors_of_values(const RunnableModel& model, const Graph& graph) {
  std::vector<TensorId> tensors(model.values.size(), kAbsent);
  for (OpId op = 0; op < graph.op_count(); ++op) {
    TensorId tensor = graph.outputs(op).first;
    for (const ValueIndex value : model.ops[op].outputs)
      if (value != kAbsent) tensors[value] = tensor++;
  }
  return tensors;
}

}  // namespace

ModelKernels::ModelKernels(std::shared_ptr<const RunnableModel> model, const Graph& graph, const KernelLibrary& library,
                           const ModelInputs& inputs)
    : ComputingModel(std::move(model)), library_(library), packed_(library.make_packed_weights()) {
  DOPPLER_CHECK(graph.op_count() == model_->ops.size(), "a graph that is not the model's");
  refuse_unknown_operators(library);
  resident_ = resident_values(*model_, inputs.given, inputs.seed, library);
  live_.resize(model_->values.size());
  tensors_ = tensors_of_values(*model_, graph);
  std::vector<KernelNode> nodes;
  for (const RunnableModel::Op& op : model_->ops) nodes.push_back(describe(op, resident_));
  const std::span<const OpId> order = graph.topological_order();
  layouts_ = plan_layouts(*model_, {order.begin(), order.end()}, nodes, library);
  plans_.resize(model_->ops.size());
  for (OpId op = 0; op < plans_.size(); ++op) make_plan(op, std::move(nodes[op]), graph);
  find_results();
}

void ComputingModel::refuse_unknown_operators(const KernelLibrary& library) const {
  std::map<std::string, std::pair<std::string, std::size_t>> missing;  // the first node and the number of nodes
  for (const auto* ops : {&model_->static_ops, &model_->ops})
    for (const RunnableModel::Op& op : *ops) {
      const auto no_tensor = [&](ValueIndex value) {
        return value != kAbsent && model_->values[value].type.element == Element::none;
      };
      // Control flow and sequences have no kernels; they are evaluated.
      if (op.has_body || std::any_of(op.inputs.begin(), op.inputs.end(), no_tensor) ||
          std::any_of(op.outputs.begin(), op.outputs.end(), no_tensor) || library.has(op.node.domain, op.node.op_type))
        continue;
      const std::string name =
          op.node.domain.empty() ? op.node.op_type : fmt::format("{}.{}", op.node.domain, op.node.op_type);
      ++missing.try_emplace(name, op.node.name, 0).first->second.second;
    }
  if (missing.empty()) return;
  std::string list;
  for (const auto& [name, nodes] : missing)
    list += fmt::format("{}'{}' (node '{}'{})", list.empty() ? "" : ", ", name, nodes.first,
                        nodes.second > 1 ? fmt::format(" and {} more", nodes.second - 1) : "");
  throw InputError(
      fmt::format("{}: found operators without kernels: {}; required those of docs/models.md", model_->where, list));
}

KernelNode ComputingModel::describe(const RunnableModel::Op& op, const std::vector<Value>& resident) const {
  KernelNode node{.name = op.node.name, .op_type = op.node.op_type, .domain = op.node.domain, .opset = op.opset};
  node.attributes = op.node.attributes;
  for (std::size_t i = 0; i < op.node.inputs.size(); ++i) {
    KernelInput& input = node.inputs.emplace_back();
    if (op.inputs[i] == kAbsent) continue;
    const RunnableModel::Value& value = model_->values[op.inputs[i]];
    input.type = value.type;
    const bool fixed = value.origin != Origin::op && value.origin != Origin::input && value.view_of == kAbsent;
    if (fixed && resident[op.inputs[i]].kind == Value::Kind::tensor) {
      input.constant = &resident[op.inputs[i]].tensor;
      input.type = input.constant->type;
    }
  }
  node.outputs_used.clear();
  for (const ValueIndex output : op.outputs) node.outputs_used.push_back(output != kAbsent);
  return node;
}

void ModelKernels::make_plan(OpId index, KernelNode node, const Graph& graph) {
  const RunnableModel::Op& op = model_->ops[index];
  Plan& plan = plans_[index];
  bool fixed = !op.has_body;  // types and shapes are known
  for (const auto* values : {&op.inputs, &op.outputs})
    for (const ValueIndex value : *values)
      fixed = fixed && (value == kAbsent || model_->values[value].type.element != Element::none);
  for (std::size_t i = 0; fixed && i < node.inputs.size(); ++i)
    fixed = !node.inputs[i].type || node.inputs[i].constant != nullptr || !library_.needs_value(node, i);
  if (fixed) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      KernelInput& input = node.inputs[i];
      if (!input.type) continue;
      input.type->layout = layouts_.of_inputs[index][i];
      if (input.constant != nullptr && !same_bytes(*input.type, Layout::row_major, input.type->layout)) {
        Tensor& relaid = relaid_[{op.inputs[i], input.type->layout}];
        if (relaid.data == nullptr) relaid = in_layout(*input.constant, input.type->layout);
        input.constant = &relaid;
      }
    }
    for (const ValueIndex output : op.outputs)
      node.output_layouts.push_back(output == kAbsent ? Layout::row_major : layouts_.of_value[output]);
    try {
      plan.kernel = library_.make(node, packed_.get());
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", model_->where, error.what()));
    }
    forget_packed(op, *plan.kernel);
    plan.scratch_bytes = round_up(plan.kernel->scratch_bytes());
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      if (op.outputs[i] == kAbsent) continue;
      TensorType wanted = model_->values[op.outputs[i]].type;
      wanted.layout = layouts_.of_value[op.outputs[i]];
      if (plan.kernel->outputs().at(i) != wanted)
        throw InputError(fmt::format("{}: {} writes {}; required {}, as the model says", model_->where,
                                     model::describe(op.node), to_string(plan.kernel->outputs()[i]),
                                     to_string(wanted)));
    }
  }
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    plan.sources.push_back(plan.kernel != nullptr && !plan.kernel->reads(i)
                               ? Source()
                               : source_of(index, i, graph, layouts_.of_inputs[index][i], plan));
  std::int32_t output = 0;
  for (const ValueIndex value : op.outputs) plan.outputs.push_back(value == kAbsent ? -1 : output++);
}

// Weights that the kernel has packed are not needed a second time, unless another op looks at them.
void ModelKernels::forget_packed(const RunnableModel::Op& op, const NodeKernel& kernel) const {
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (op.inputs[i] == kAbsent || kernel.reads(i)) continue;
    const RunnableModel::Value& value = model_->values[op.inputs[i]];
    if (value.mapped) forget_pages(value.tensor.data.get(), value.tensor.type.bytes());
  }
}

ModelKernels::Source ModelKernels::source_of(OpId index, std::size_t input, const Graph& graph, Layout wanted,
                                             Plan& plan) {
  const RunnableModel::Op& op = model_->ops[index];
  Source source;
  if (op.inputs[input] == kAbsent) return source;
  const ValueIndex value = op.inputs[input], origin = model_->source_of(value);
  const TensorType& type = model_->values[value].type;
  if (type.element == Element::none) return source;
  if (model_->values[origin].origin != Origin::op) {
    DOPPLER_CHECK(resident_[origin].kind == Value::Kind::tensor, "value '{}' is not there",
                  model_->values[origin].name);
    const auto relaid = relaid_.find({value, wanted});
    source.resident = (relaid != relaid_.end() ? relaid->second : resident_[origin].tensor).data.get();
    if (relaid != relaid_.end()) return source;
  } else {
    source.tensor = position(graph.inputs(index), tensors_[origin]);
  }
  const auto reorder = [&](const TensorType& what, Layout from, Layout to) {
    if (same_bytes(what, from, to)) return;
    Reordering reordering{make_reorder(what, from, to), source};
    reordering.to = plan.scratch_bytes;
    reordering.scratch = plan.scratch_bytes + round_up(what.bytes());
    plan.scratch_bytes = reordering.scratch + round_up(reordering.kernel->scratch_bytes());
    source = {};
    source.reordered = static_cast<std::int32_t>(plan.reorderings.size());
    plan.reorderings.push_back(std::move(reordering));
  };
  // What is seen under another shape is row-major.
  const Layout lies = layouts_.of_value[origin];
  reorder(model_->values[origin].type, lies, value == origin ? wanted : Layout::row_major);
  if (value != origin) reorder(type, Layout::row_major, wanted);
  return source;
}

std::unique_ptr<NodeKernel> ModelKernels::make_reorder(const TensorType& type, Layout from, Layout to) const {
  KernelNode node{.name = "reorder", .op_type = "Reorder", .domain = "doppler"};
  node.inputs = {{type}};
  node.inputs[0].type->layout = from;
  node.output_layouts = {to};
  return library_.make(node);
}

Tensor ModelKernels::in_layout(Tensor tensor, Layout layout) const {
  const std::unique_ptr<NodeKernel> kernel = make_reorder(tensor.type, tensor.type.layout, layout);
  TensorType type = tensor.type;
  type.layout = layout;
  Tensor result(type);
  const std::byte* const from = tensor.data.get();
  std::byte* const to = result.data.get();
  kernel->run({&from, 1}, {&to, 1}, scratch_of_thread(kernel->scratch_bytes()));
  return result;
}

void ModelKernels::find_results() {
  for (std::size_t i = 0; i < model_->outputs.size(); ++i) {
    Result result;
    result.name = model_->output_names[i];
    result.value = model_->outputs[i];
    result.source = model_->source_of(result.value);
    const RunnableModel::Value& source = model_->values[result.source];
    if (source.origin == Origin::op) {
      if (!same_bytes(source.type, layouts_.of_value[result.source], Layout::row_major))
        result.reorder = make_reorder(source.type, layouts_.of_value[result.source], Layout::row_major);
      for (OpId op = 0; op < plans_.size(); ++op) {
        const std::vector<ValueIndex>& outputs = model_->ops[op].outputs;
        const auto found = std::find(outputs.begin(), outputs.end(), result.source);
        if (found == outputs.end()) continue;
        result.output = static_cast<std::size_t>(found - outputs.begin());
        plans_[op].results.push_back(i);
      }
    }
    results_.push_back(std::move(result));
  }
}

const std::byte* ModelKernels::locate(const Source& source, const OpBuffers& buffers, const std::byte* scratch,
                                      const Plan& plan) const {
  if (source.reordered >= 0) return scratch + plan.reorderings[static_cast<std::size_t>(source.reordered)].to;
  return source.tensor >= 0 ? buffers.inputs[static_cast<std::size_t>(source.tensor)] : source.resident;
}

void ModelKernels::run(OpId op, DeviceId, const OpBuffers& buffers) {
  const Plan& plan = plans_[op];
  std::byte* const scratch = scratch_of_thread(plan.scratch_bytes);
  for (const Reordering& reordering : plan.reorderings) {
    const std::byte* const from = locate(reordering.from, buffers, scratch, plan);
    std::byte* const to = scratch + reordering.to;
    reordering.kernel->run({&from, 1}, {&to, 1}, scratch + reordering.scratch);
  }
  if (plan.kernel == nullptr) {
    evaluate_op(op, buffers);
  } else {
    thread_local std::vector<const std::byte*> inputs;
    thread_local std::vector<std::byte*> outputs;
    inputs.clear();
    outputs.clear();
    for (const Source& source : plan.sources) inputs.push_back(locate(source, buffers, scratch, plan));
    for (const std::int32_t output : plan.outputs)
      outputs.push_back(output < 0 ? nullptr : buffers.outputs[static_cast<std::size_t>(output)]);
    plan.kernel->run(inputs, outputs, scratch);
  }
  if (keeps_ && !plan.results.empty()) keep(plan, buffers);
}

void ModelKernels::evaluate_op(OpId index, const OpBuffers& buffers) {
  const RunnableModel::Op& op = model_->ops[index];
  const Plan& plan = plans_[index];
  std::byte* const scratch = scratch_of_thread(plan.scratch_bytes);
  std::vector<Value> inputs;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const ValueIndex value = op.inputs[i];
    if (value == kAbsent) {
      inputs.emplace_back();
    } else if (model_->values[value].type.element == Element::none) {
      const ValueIndex source = model_->source_of(value);
      inputs.push_back(model_->values[source].origin == Origin::op ? live_[source] : resident_[source]);
    } else {
      inputs.emplace_back(Tensor::view(model_->values[value].type, locate(plan.sources[i], buffers, scratch, plan)));
    }
  }
  const std::vector<Value> outputs = evaluate(*model_, op, inputs, library_);
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (op.outputs[i] == kAbsent) continue;
    const RunnableModel::Value& value = model_->values[op.outputs[i]];
    if (value.type.element == Element::none) {
      live_[op.outputs[i]] = outputs.at(i);
      continue;
    }
    const Tensor& tensor = outputs.at(i).tensor;
    if (outputs[i].kind != Value::Kind::tensor || tensor.type != value.type)
      throw InputError(fmt::format("{}: output '{}' became {}; required {}, for which the graph was made",
                                   model::describe(op.node), value.name, to_string(tensor.type),
                                   to_string(value.type)));
    if (tensor.type.bytes() > 0)
      std::memcpy(buffers.outputs[static_cast<std::size_t>(plan.outputs[i])], tensor.data.get(), tensor.type.bytes());
  }
}

void ModelKernels::keep(const Plan& plan, const OpBuffers& buffers) {
  for (const std::size_t number : plan.results) {
    Result& result = results_[number];
    if (model_->values[result.source].type.element == Element::none || result.kept.data == nullptr) continue;
    const std::byte* const from = buffers.outputs[static_cast<std::size_t>(plan.outputs[result.output])];
    std::byte* const to = result.kept.data.get();
    if (result.reorder == nullptr)
      std::memcpy(to, from, result.kept.type.bytes());
    else
      result.reorder->run({&from, 1}, {&to, 1}, scratch_of_thread(result.reorder->scratch_bytes()));
  }
}

void ModelKernels::keep_results(bool keep) {
  keeps_ = keep;
  for (Result& result : results_) {
    const TensorType& type = model_->values[result.value].type;
    if (keep && type.element != Element::none && model_->values[result.source].origin == Origin::op)
      result.kept = Tensor(type);
  }
}

std::vector<Value> ModelKernels::results() const {
  std::vector<Value> values;
  for (const Result& result : results_) {
    if (model_->values[result.source].origin != Origin::op) {
      Value value = resident_[result.source];
      if (value.kind == Value::Kind::tensor) value.tensor.type = model_->values[result.value].type;
      values.push_back(std::move(value));
    } else if (model_->values[result.source].type.element == Element::none) {
      values.push_back(live_[result.source]);
    } else {
      values.emplace_back(result.kept);
    }
  }
  return values;
}

void ComputingModel::take_results(const std::function<void(const std::string& name, std::string npy)>& take) const {
  const std::vector<Value> values = results();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].kind != Value::Kind::tensor)
      throw InputError(fmt::format("{}: output '{}' is no tensor; required one to write it", model_->where,
                                   model_->output_names[i]));
    take(model_->output_names[i], to_tensor_npy(values[i].tensor));
  }
}

std::string ModelKernels::implementation(OpId op) const {
  return plans_[op].kernel == nullptr ? "evaluated" : plans_[op].kernel->implementation();
}

}  // namespace doppler::model
