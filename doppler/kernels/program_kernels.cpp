#include "doppler/kernels/program_kernels.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/kernels/npy.h"

namespace doppler {

using program::ExprId;
using program::Node;

namespace {

Arrays checked(const program::Program& program, Arrays inputs) {
  const std::vector<char> needed = live(program);
  for (ExprId id = 0; id < program.size(); ++id) {
    const Node& node = program.node(id);
    if (node.as<program::Input>() == nullptr || !needed[id]) continue;
    const auto found = inputs.find(id);
    if (found == inputs.end())
      throw InputError(fmt::format("input '{}': found no value; required {} {}", node.name,
                                   program::to_string(node.dtype), program::to_string(node.shape)));
    const Array& array = found->second;
    if (array.dtype != node.dtype || array.shape != node.shape)
      throw InputError(fmt::format("input '{}': found {} {}; required {} {}", node.name,
                                   program::to_string(array.dtype), program::to_string(array.shape),
                                   program::to_string(node.dtype), program::to_string(node.shape)));
  }
  return inputs;
}

}  // namespace

ProgramKernels::ProgramKernels(const program::Program& program, const program::Lowered& lowered, Arrays inputs,
                               const program::Variables& variables, std::shared_ptr<Backend> backend)
    : backend_(std::move(backend)), inputs_(checked(program, std::move(inputs))) {
  const PlanContext context{program, lowered, inputs_, variables, *backend_};
  std::map<ExprId, std::vector<OpId>> ops_of;
  for (OpId op = 0; op < lowered.graph.op_count(); ++op) {
    ops_of[lowered.kernels[op].expr].push_back(op);
    plans_.push_back(plan_op(context, op));
    scratch_bytes_ = std::max(scratch_bytes_, plans_.back().scratch_bytes);
  }
  result_of_op_.assign(plans_.size(), nullptr);
  const auto add_result = [&](ExprId id) {
    const Node& node = program.node(id);
    // A formation of one partial result may have been left out: then that is the result.
    const bool left_out = node.as<program::Formation>() != nullptr && !ops_of.contains(id);
    kept_.push_back({id, node.name, node.dtype, node.shape, ops_of[left_out ? node.inputs[0] : id]});
  };
  for (const ExprId id : program.outputs()) add_result(id);
  for (const program::Program::Update& update : program.updates()) add_result(update.next);
}

ProgramKernels::~ProgramKernels() {
  for (const auto& [key, data] : uploads_) backend_->free(key.first, data);
}

void ProgramKernels::run(OpId op, DeviceId device, const OpBuffers& buffers) {
  const OpPlan& plan = plans_[op];
  if (plan.folds.empty())
    compute(plan, op, device, buffers);
  else
    for (std::size_t i = 0; i < plan.partials.size(); ++i) fold_one(op, device, plan.partials[i], i == 0, buffers);
  backend_->finish(device);
}

void ProgramKernels::fold(OpId op, DeviceId device, std::size_t input, bool first, const OpBuffers& buffers) {
  fold_one(op, device, input, first, buffers);
  backend_->finish(device);
}

void ProgramKernels::compute(const OpPlan& plan, OpId op, DeviceId device, const OpBuffers& buffers) {
  std::byte* const scratch = backend_->scratch(device, scratch_bytes_);
  std::byte* const block = plan.whole ? buffers.outputs[*plan.whole] : scratch + plan.block;
  for (const OpPlan::Gather& gather : plan.gathers)
    backend_->run(device, gather.copy, locate(gather.from, device, buffers, scratch),
                  plan.kernel ? scratch + gather.to : block);
  if (plan.kernel) {
    thread_local std::vector<const std::byte*> operands;
    operands.clear();
    for (const DataSource& operand : plan.operands) operands.push_back(locate(operand, device, buffers, scratch));
    plan.kernel->run(device, operands, block, scratch + plan.work);
  }
  for (const OpPlan::Cut& cut : plan.cuts) backend_->run(device, cut.copy, block, buffers.outputs[cut.output]);
  if (std::byte* const result = result_of_op_[op])
    plan.to_result->run(on_host(device, block, plan.block_bytes), result);
}

void ProgramKernels::fold_one(OpId op, DeviceId device, std::size_t input, bool first, const OpBuffers& buffers) {
  const OpPlan& plan = plans_[op];
  const std::byte* const partial = buffers.inputs[input];
  for (std::size_t i = 0; i < plan.folds.size(); ++i)
    backend_->run(device, plan.folds[i], partial, buffers.outputs[i], first);
  if (std::byte* const result = result_of_op_[op])
    plan.fold_to_result->run(on_host(device, partial, plan.block_bytes), result, first);
}

const std::byte* ProgramKernels::locate(const DataSource& source, DeviceId device, const OpBuffers& buffers,
                                        const std::byte* scratch) {
  if (!source.resident.empty())
    return (backend_->on_host() ? source.resident.data() : on_device(device, source.resident)) + source.offset;
  return (source.input ? buffers.inputs[*source.input] : scratch + source.scratch) + source.offset;
}

const std::byte* ProgramKernels::on_device(DeviceId device, std::span<const std::byte> resident) {
  const std::lock_guard lock(uploads_mutex_);
  std::byte*& data = uploads_[{device, resident.data()}];
  if (data == nullptr) {
    std::byte* const fresh = backend_->allocate(device, resident.size());
    backend_->copy(resident.data(), std::nullopt, fresh, device, resident.size());
    data = fresh;
  }
  return data;
}

// Returns the bytes in the host's memory, valid until the calling thread asks again.
const std::byte* ProgramKernels::on_host(DeviceId device, const std::byte* data, Bytes bytes) const {
  if (backend_->on_host()) return data;
  thread_local AlignedBytes copy;
  if (copy.size() < bytes) copy = AlignedBytes(bytes);
  backend_->finish(device);
  backend_->copy(data, device, copy.data(), std::nullopt, bytes);
  return copy.data();
}

void ProgramKernels::take_results(const std::function<void(const std::string& name, std::string npy)>& take) const {
  // In the order of expressions, each once.
  std::map<ExprId, const std::string*> names;
  for (const Result& result : kept_) names[result.expr] = &result.name;
  for (const auto& [expr, array] : results_) take(*names.at(expr), to_npy(array));
}

void ProgramKernels::keep_results(bool keep) {
  for (const Result& result : kept_) {
    if (keep && !results_.contains(result.expr)) {
      Array& array = results_.emplace(result.expr, Array(result.dtype, result.shape)).first->second;
      if (result.ops.empty())
        std::memcpy(array.bytes.data(), inputs_.region(result.expr, program::Rect::whole(result.shape)).data(),
                    array.bytes.size());
    }
    for (const OpId op : result.ops)
      result_of_op_[op] = keep ? results_.find(result.expr)->second.bytes.data() : nullptr;
  }
}

}  // namespace doppler
