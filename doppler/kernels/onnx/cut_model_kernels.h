#pragma once

#include <deque>
#include <map>

#include "doppler/kernels/onnx/model_kernels.h"
#include "doppler/kernels/onnx/value_store.h"
#include "doppler/kernels/strided_copy.h"

namespace doppler::model {

// The blocks of an ONNX model that is cut, computed for real on devices of one memory. Every value lies whole in one
// buffer (ValueStore). A block reads and writes its parts in place where those lie together in memory: rows with
// channels last, rows of matrices, batches. It copies others: what it reads before, what it writes after its kernel.
class CutModelKernels final : public ComputingModel {
 public:
  // Throws InputError as ModelKernels does, and for ops that are evaluated anew in every run: control flow, sequences
  // and shapes that depend on data.
  CutModelKernels(std::shared_ptr<const RunnableModel> model, const Graph& graph, const KernelLibrary& library,
                  const ModelInputs& inputs = {});

  bool hold_tensors() const override { return true; }
  void start() override { store_.start(); }
  void run(OpId op, DeviceId device, const OpBuffers& buffers) override;
  void keep_results(bool) override {}  // they stay where they are until the next run
  std::vector<Value> results() const override;

  std::string implementation(OpId op) const { return plans_[op].kernel->implementation(); }
  // Returns the bytes that the block copies beside what its kernel reads and writes.
  std::size_t copied_bytes(OpId op) const { return plans_[op].copied_bytes; }

 private:
  // Where a block finds an input: in a value, in memory that is there from the beginning, or in a copy.
  struct Source {
    ValueIndex value = kAbsent;
    const std::byte* resident = nullptr;
    std::int32_t copy = -1;
    std::size_t offset = 0;
  };
  struct Copy {
    StridedCopy how;
    Source from;
    std::size_t to = 0;  // offset in scratch memory
  };
  struct Target {
    ValueIndex value = kAbsent;  // absent: the output is not used
    std::size_t offset = 0;
    std::optional<StridedCopy> scatter = std::nullopt;  // from scratch memory
    std::size_t scratch = 0;
  };
  struct Plan {
    std::unique_ptr<NodeKernel> kernel;
    std::vector<Source> sources;
    std::vector<Copy> copies;
    std::vector<Target> targets;
    std::vector<ValueIndex> uses;   // values that it reads or writes, each once
    std::size_t scratch_bytes = 0;  // the kernel's own come first
    std::size_t copied_bytes = 0;
  };

  void refuse_evaluated(const KernelNode& node, const RunnableModel::Op& op) const;
  void make_plan(OpId block, const KernelNode& whole);
  Source source_of(const RunnableModel::Op& op, std::size_t slot, const program::Rect& region, Layout wanted,
                   Plan& plan) const;
  Source copied(Source from, StridedCopy how, std::size_t bytes, Plan& plan) const;
  Target target_of(ValueIndex value, const program::Rect& region, Plan& plan) const;
  const Tensor& constant_part(ValueIndex value, const Tensor& whole, const program::Rect& region, Layout layout);
  TensorType stored_type(ValueIndex value) const;
  void lay_out_values();
  const std::byte* locate(const Source& source, const std::byte* scratch, const Plan& plan) const;

  const KernelLibrary& library_;
  std::vector<Value> resident_;  // by value
  std::unique_ptr<PackedWeights> packed_;
  LayoutPlan layouts_;
  std::map<std::tuple<ValueIndex, Layout, Shape, Shape>, Tensor> parts_;  // of constants
  std::deque<Tensor> made_;                                               // constants of blocks
  std::vector<Plan> plans_;                                               // by op of the graph
  ValueStore store_;
};

}  // namespace doppler::model
