#include "doppler/kernels/onnx/cut_model_kernels.h"

#include <algorithm>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/kernels/onnx/block_node.h"
#include "doppler/kernels/onnx/model_values.h"
#include "doppler/kernels/onnx/tensor_region.h"

namespace doppler::model {
namespace {

using Origin = RunnableModel::Origin;
using program::Rect;

std::size_t whole_lines(std::size_t bytes) {
  return (bytes + AlignedBytes::kAlignment - 1) / AlignedBytes::kAlignment * AlignedBytes::kAlignment;
}

std::byte* block_scratch(std::size_t bytes) {
  thread_local AlignedBytes memory;
  if (memory.size() < bytes) memory = AlignedBytes(bytes);
  return memory.data();
}

void add_once(std::vector<ValueIndex>& values, ValueIndex value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

}  // namespace

CutModelKernels::CutModelKernels(std::shared_ptr<const RunnableModel> model, const Graph& graph,
                                 const KernelLibrary& library, const ModelInputs& inputs)
    : ComputingModel(std::move(model)), library_(library), packed_(library.make_packed_weights()) {
  DOPPLER_CHECK(graph.op_count() == model_->blocks.size(), "a graph that is not the model's");
  refuse_unknown_operators(library);
  resident_ = resident_values(*model_, inputs.given, inputs.seed, library);
  std::vector<KernelNode> nodes;
  std::vector<std::uint32_t> order;  // ops are numbered producers first
  for (const RunnableModel::Op& op : model_->ops) {
    nodes.push_back(describe(op, resident_));
    refuse_evaluated(nodes.back(), op);
    order.push_back(static_cast<std::uint32_t>(order.size()));
  }
  layouts_ = plan_layouts(*model_, order, nodes, library, false);
  plans_.resize(model_->blocks.size());
  for (OpId block = 0; block < plans_.size(); ++block) make_plan(block, nodes[model_->blocks[block].op]);
  lay_out_values();
}

void CutModelKernels::refuse_evaluated(const KernelNode& node, const RunnableModel::Op& op) const {
  bool fixed = !op.has_body;
  for (const auto* values : {&op.inputs, &op.outputs})
    for (const ValueIndex value : *values)
      fixed = fixed && (value == kAbsent || model_->values[value].type.element != Element::none);
  for (std::size_t i = 0; fixed && i < node.inputs.size(); ++i)
    fixed = !node.inputs[i].type || node.inputs[i].constant != nullptr || !library_.needs_value(node, i);
  if (fixed) return;
  throw InputError(
      fmt::format("{}: {} is control flow, has values that are no tensors or a shape that depends on data; required a "
                  "model without such nodes to run it in blocks, or no --shard",
                  model_->where, model::describe(op.node)));
}

TensorType CutModelKernels::stored_type(ValueIndex value) const {
  TensorType type = model_->values[value].type;
  type.layout = layouts_.of_value[value];
  return type;
}

void CutModelKernels::make_plan(OpId index, const KernelNode& whole) {
  const RunnableModel::Block& block = model_->blocks[index];
  const RunnableModel::Op& op = model_->ops[block.op];
  Plan& plan = plans_[index];
  const ValueIndex written = op.outputs[block.output == kAbsent ? 0 : block.output];
  BlockNode made = block_node(whole, block, written == kAbsent ? Shape() : model_->values[written].type.shape, made_);
  KernelNode& node = made.node;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!made.inputs[i]) continue;
    const auto& [slot, region] = *made.inputs[i];
    KernelInput& input = node.inputs[i];
    const Layout layout = layouts_.of_inputs[block.op][slot];
    if (input.constant != nullptr) {
      input.constant = &constant_part(op.inputs[slot], *input.constant, region, layout);
      input.type = input.constant->type;
    } else {
      input.type = TensorType{input.type->element, region.shape(), layout};
    }
  }
  std::vector<ValueIndex> outputs = block.output == kAbsent ? op.outputs : std::vector<ValueIndex>{written};
  for (const ValueIndex value : outputs)
    node.output_layouts.push_back(value == kAbsent ? Layout::row_major : layouts_.of_value[value]);
  try {
    plan.kernel = library_.make(node, packed_.get());
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", model_->where, error.what()));
  }
  plan.scratch_bytes = whole_lines(plan.kernel->scratch_bytes());
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    plan.sources.push_back(made.inputs[i] && plan.kernel->reads(i)
                               ? source_of(op, made.inputs[i]->slot, made.inputs[i]->region,
                                           layouts_.of_inputs[block.op][made.inputs[i]->slot], plan)
                               : Source());
  // Constants of the block's own.
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (!made.inputs[i] && node.inputs[i].constant != nullptr && plan.kernel->reads(i))
      plan.sources[i].resident = node.inputs[i].constant->data.get();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == kAbsent) {
      plan.targets.emplace_back();
      continue;
    }
    TensorType wanted = stored_type(outputs[i]);
    if (block.output != kAbsent) wanted.shape = block.region.shape();
    if (plan.kernel->outputs().at(i) != wanted)
      throw InputError(fmt::format("{}: a block of {} writes {}; required {}, as the model says", model_->where,
                                   model::describe(op.node), to_string(plan.kernel->outputs()[i]), to_string(wanted)));
    plan.targets.push_back(
        target_of(outputs[i], block.output == kAbsent ? Rect::whole(wanted.shape) : block.region, plan));
    add_once(plan.uses, outputs[i]);
  }
}

const Tensor& CutModelKernels::constant_part(ValueIndex value, const Tensor& whole, const Rect& region, Layout layout) {
  const bool all = region == Rect::whole(whole.type.shape);
  // Kernels of all blocks share what they pack of one tensor, which they know by its address.
  if (all && layout == whole.type.layout) return whole;
  Tensor& part = parts_[{value, layout, region.begin, region.end}];
  if (part.data == nullptr) {
    part = Tensor(TensorType{whole.type.element, region.shape(), layout});
    if (part.type.bytes() > 0) gather_region(whole.type, region, layout).run(whole.data.get(), part.data.get());
  }
  return part;
}

CutModelKernels::Source CutModelKernels::copied(Source from, StridedCopy how, std::size_t bytes, Plan& plan) const {
  Source source;
  source.copy = static_cast<std::int32_t>(plan.copies.size());
  plan.copies.push_back({std::move(how), from, plan.scratch_bytes});
  plan.scratch_bytes += whole_lines(bytes);
  plan.copied_bytes += bytes;
  return source;
}

CutModelKernels::Source CutModelKernels::source_of(const RunnableModel::Op& op, std::size_t slot, const Rect& region,
                                                   Layout wanted, Plan& plan) const {
  const ValueIndex value = op.inputs[slot], origin = model_->source_of(value);
  Source source;
  if (model_->values[origin].origin == Origin::op) {
    source.value = origin;
    add_once(plan.uses, origin);
  } else {
    DOPPLER_CHECK(resident_[origin].kind == Value::Kind::tensor, "value '{}' is not there",
                  model_->values[origin].name);
    const auto part = parts_.find({value, wanted, region.begin, region.end});
    source.resident = (part != parts_.end() ? part->second : resident_[origin].tensor).data.get();
    if (part != parts_.end()) return source;
  }
  TensorType type = stored_type(origin);
  if (value != origin) {
    // What is seen under another shape is row-major. The block waits for what it needs of the value, so that it must
    // not look at anything else of it.
    const TensorType& seen = model_->values[value].type;
    if (!same_bytes(type, type.layout, Layout::row_major))
      source = copied(source, region_to_row_major(type, region_below_view(type.shape, seen.shape, region)),
                      type.bytes(), plan);
    type = seen;
  }
  if (region.volume() == 0) return source;
  const TensorType part{type.element, region.shape(), type.layout};
  if (same_bytes(part, type.layout, wanted))
    if (const auto offset = dense_offset(type, region)) {
      source.offset += static_cast<std::size_t>(*offset) * size_of(type.element);
      return source;
    }
  return copied(source, gather_region(type, region, wanted), part.bytes(), plan);
}

CutModelKernels::Target CutModelKernels::target_of(ValueIndex value, const Rect& region, Plan& plan) const {
  const TensorType type = stored_type(value);
  Target target{.value = value};
  if (const auto offset = dense_offset(type, region)) {
    target.offset = static_cast<std::size_t>(*offset) * size_of(type.element);
    return target;
  }
  target.scatter = scatter_region(type, region, type.layout);
  target.scratch = plan.scratch_bytes;
  const std::size_t bytes = static_cast<std::size_t>(region.volume()) * size_of(type.element);
  plan.scratch_bytes += whole_lines(bytes);
  plan.copied_bytes += bytes;
  return target;
}

void CutModelKernels::lay_out_values() {
  std::vector<std::size_t> bytes(model_->values.size(), 0);
  std::vector<std::uint32_t> users(model_->values.size(), 0);
  for (const Plan& plan : plans_)
    for (const ValueIndex value : plan.uses) ++users[value];
  for (const ValueIndex output : model_->outputs) ++users[model_->source_of(output)];
  for (ValueIndex value = 0; value < bytes.size(); ++value)
    if (users[value] > 0 && model_->values[value].origin == Origin::op)
      bytes[value] = model_->values[value].type.bytes();
  store_.lay_out(std::move(bytes), std::move(users));
}

const std::byte* CutModelKernels::locate(const Source& source, const std::byte* scratch, const Plan& plan) const {
  const std::byte* base = source.resident;
  if (source.value != kAbsent) base = store_.at(source.value);
  if (source.copy >= 0) base = scratch + plan.copies[static_cast<std::size_t>(source.copy)].to;
  return base == nullptr ? nullptr : base + source.offset;
}

void CutModelKernels::run(OpId op, DeviceId, const OpBuffers&) {
  const Plan& plan = plans_[op];
  std::byte* const scratch = block_scratch(plan.scratch_bytes);
  for (const Copy& copy : plan.copies) copy.how.run(locate(copy.from, scratch, plan), scratch + copy.to);
  thread_local std::vector<const std::byte*> inputs;
  thread_local std::vector<std::byte*> outputs;
  inputs.clear();
  outputs.clear();
  for (const Source& source : plan.sources) inputs.push_back(locate(source, scratch, plan));
  for (const Target& target : plan.targets) {
    std::byte* const value = target.value == kAbsent ? nullptr : store_.acquire(target.value);
    outputs.push_back(target.scatter ? scratch + target.scratch : value == nullptr ? nullptr : value + target.offset);
  }
  plan.kernel->run(inputs, outputs, scratch);
  for (std::size_t i = 0; i < plan.targets.size(); ++i)
    if (plan.targets[i].scatter) plan.targets[i].scatter->run(outputs[i], store_.at(plan.targets[i].value));
  for (const ValueIndex value : plan.uses) store_.release(value);
}

std::vector<Value> CutModelKernels::results() const {
  std::vector<Value> values;
  for (const ValueIndex output : model_->outputs) {
    const ValueIndex source = model_->source_of(output);
    const TensorType& type = model_->values[output].type;
    if (model_->values[source].origin != Origin::op) {
      Value value = resident_[source];
      if (value.kind == Value::Kind::tensor) value.tensor.type = type;
      values.push_back(std::move(value));
      continue;
    }
    const TensorType stored = stored_type(source);
    Tensor result(type);
    if (stored.bytes() > 0) {
      DOPPLER_CHECK(store_.at(source) != nullptr, "no run has left a result");
      gather_region(stored, Rect::whole(stored.shape), Layout::row_major).run(store_.at(source), result.data.get());
    }
    values.emplace_back(std::move(result));
  }
  return values;
}

}  // namespace doppler::model
