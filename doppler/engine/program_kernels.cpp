#include "doppler/engine/program_kernels.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/engine/gemm.h"

namespace doppler {

using program::ExprId;
using program::Node;

namespace {

// Memory of the calling thread for the time of one op. It only grows, to what the largest op of the program needs, so
// that a thread allocates once.
std::byte* scratch(std::size_t bytes) {
  thread_local AlignedBytes memory;
  if (memory.size() < bytes) memory = AlignedBytes(bytes);
  return memory.data();
}

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
                               const program::Variables& variables)
    : inputs_(checked(program, std::move(inputs))) {
  keep_blas_to_one_thread();
  std::map<ExprId, std::vector<OpId>> ops_of;
  for (OpId op = 0; op < lowered.graph.op_count(); ++op) {
    ops_of[lowered.kernels[op].expr].push_back(op);
    plans_.push_back(plan_op(program, lowered, op, inputs_, variables));
    scratch_bytes_ = std::max(scratch_bytes_, plans_.back().scratch_bytes);
  }
  result_of_op_.assign(plans_.size(), nullptr);
  const auto add_result = [&](ExprId id) {
    const Node& node = program.node(id);
    // A formation of one partial result may have been left out: then that is the result.
    const bool left_out = node.as<program::Formation>() != nullptr && !ops_of.contains(id);
    kept_.push_back({id, node.dtype, node.shape, ops_of[left_out ? node.inputs[0] : id]});
  };
  for (const ExprId id : program.outputs()) add_result(id);
  for (const program::Program::Update& update : program.updates()) add_result(update.next);
}

void ProgramKernels::run(OpId op, DeviceId, const OpBuffers& buffers) {
  const OpPlan& plan = plans_[op];
  if (!plan.folds.empty()) {
    for (std::size_t i = 0; i < plan.partials.size(); ++i) fold(op, plan.partials[i], i == 0, buffers);
    return;
  }
  std::byte* const memory = scratch(scratch_bytes_);
  std::byte* const block = plan.whole ? buffers.outputs[*plan.whole] : memory + plan.block;
  for (const OpPlan::Gather& gather : plan.gathers)
    gather.copy.run(gather.from.in(buffers, memory), plan.kernel ? memory + gather.to : block);
  if (plan.kernel) {
    const std::byte** const operands = reinterpret_cast<const std::byte**>(memory + plan.pointers);
    for (std::size_t k = 0; k < plan.operands.size(); ++k) operands[k] = plan.operands[k].in(buffers, memory);
    plan.kernel->run({operands, plan.operands.size()}, block, memory + plan.work);
  }
  for (const OpPlan::Cut& cut : plan.cuts) cut.copy.run(block, buffers.outputs[cut.output]);
  if (std::byte* const result = result_of_op_[op]) plan.to_result->run(block, result);
}

void ProgramKernels::fold(OpId op, std::size_t input, bool first, const OpBuffers& buffers) {
  const OpPlan& plan = plans_[op];
  const std::byte* const partial = buffers.inputs[input];
  for (std::size_t i = 0; i < plan.folds.size(); ++i) plan.folds[i].run(partial, buffers.outputs[i], first);
  if (std::byte* const result = result_of_op_[op]) plan.fold_to_result->run(partial, result, first);
}

void ProgramKernels::keep_results(bool keep) {
  for (const Result& result : kept_) {
    if (keep && !results_.contains(result.expr)) {
      Array& array = results_.emplace(result.expr, Array(result.dtype, result.shape)).first->second;
      if (result.ops.empty())
        std::memcpy(array.bytes.data(), inputs_.region(result.expr, program::Rect::whole(result.shape)),
                    array.bytes.size());
    }
    for (const OpId op : result.ops)
      result_of_op_[op] = keep ? results_.find(result.expr)->second.bytes.data() : nullptr;
  }
}

}  // namespace doppler
