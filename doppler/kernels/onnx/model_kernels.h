#pragma once

#include <map>
#include <memory>

#include "doppler/graph.h"
#include "doppler/kernels/computing_kernels.h"
#include "doppler/kernels/onnx/kernel.h"
#include "doppler/kernels/onnx/layout_plan.h"
#include "doppler/program/onnx/runnable_model.h"

namespace doppler::model {

struct ModelInputs {
  std::map<std::string, Tensor> given = {};  // by name; the others are drawn
  std::uint64_t seed = 0;
};

// Kernels of a model, whole or cut.
class ComputingModel : public ComputingKernels {
 public:
  // Returns the results that the last run left, in the order of the model's outputs.
  virtual std::vector<Value> results() const = 0;
  void take_results(const std::function<void(const std::string& name, std::string npy)>& take) const final;

 protected:
  explicit ComputingModel(std::shared_ptr<const RunnableModel> model) : model_(std::move(model)) {}
  // Throws InputError that names every operator without kernels, if there is any.
  void refuse_unknown_operators(const KernelLibrary& library) const;
  // Returns the op as kernels are made from it, row-major; `resident` is what there is before the first run, by value.
  KernelNode describe(const RunnableModel::Op& op, const std::vector<Value>& resident) const;

  std::shared_ptr<const RunnableModel> model_;
};

// The ops of an ONNX model, computed for real, each on the thread that calls. Everything that is known before the first
// run is done here: weights are packed, what depends on no data is computed, layouts are chosen. An op then looks
// nothing up and, once every thread has its scratch memory, allocates nothing, unless the shape of its output depends on
// data or its values are no tensors.
class ModelKernels final : public ComputingModel {
 public:
  // Throws InputError that names every operator without kernels, if there is any; if an input has another type than the
  // model says; and if a node is wrong.
  ModelKernels(std::shared_ptr<const RunnableModel> model, const Graph& graph, const KernelLibrary& library,
               const ModelInputs& inputs = {});

  void run(OpId op, DeviceId device, const OpBuffers& buffers) override;
  void keep_results(bool keep) override;
  std::vector<Value> results() const override;
  const LayoutPlan& layouts() const { return layouts_; }
  // Returns who computes the op: "onednn brgconv:avx512_core", "own", or "evaluated" if it is looked at anew each time.
  std::string implementation(OpId op) const;

 private:
  // Where an op finds an input: memory that is there from the beginning, or a tensor of the graph.
  struct Source {
    const std::byte* resident = nullptr;
    std::int32_t tensor = -1;     // its number among the op's inputs
    std::int32_t reordered = -1;  // the number of the reordering that has to happen first
  };
  struct Reordering {
    std::unique_ptr<NodeKernel> kernel;
    Source from;
    std::size_t to = 0;  // offset in scratch memory
    std::size_t scratch = 0;
  };
  struct Plan {
    std::unique_ptr<NodeKernel> kernel;  // null: evaluated
    std::vector<Source> sources;
    std::vector<Reordering> reorderings;
    std::vector<std::int32_t> outputs;  // numbers among the op's outputs of the graph; -1 where there is none
    std::size_t scratch_bytes = 0;      // the kernel's own come first
    std::vector<std::size_t> results;   // numbers of the results that it writes
  };
  struct Result {
    std::string name;
    ValueIndex value = kAbsent, source = kAbsent;
    std::size_t output = 0;               // of the op that writes it
    std::unique_ptr<NodeKernel> reorder;  // where the tensor is not row-major
    Tensor kept;
  };

  void make_plan(OpId op, KernelNode node, const Graph& graph);
  void forget_packed(const RunnableModel::Op& op, const NodeKernel& kernel) const;
  Source source_of(OpId op, std::size_t input, const Graph& graph, Layout wanted, Plan& plan);
  std::unique_ptr<NodeKernel> make_reorder(const TensorType& type, Layout from, Layout to) const;
  Tensor in_layout(Tensor tensor, Layout layout) const;
  void find_results();
  const std::byte* locate(const Source& source, const OpBuffers& buffers, const std::byte* scratch,
                          const Plan& plan) const;
  void evaluate_op(OpId op, const OpBuffers& buffers);
  void keep(const Plan& plan, const OpBuffers& buffers);

  const KernelLibrary& library_;
  std::vector<Value> resident_;                             // by value
  std::map<std::pair<ValueIndex, Layout>, Tensor> relaid_;  // constants in other layouts
  std::vector<Value> live_;                                 // by value: those that are no tensors of the graph
  std::unique_ptr<PackedWeights> packed_;
  LayoutPlan layouts_;
  std::vector<TensorId> tensors_;  // of the graph, by value; kAbsent for what no op writes
  std::vector<Plan> plans_;        // by op
  std::vector<Result> results_;
  bool keeps_ = false;
};

}  // namespace doppler::model
