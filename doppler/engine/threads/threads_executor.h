#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "doppler/engine/runtime/runtime.h"
#include "doppler/executor.h"
#include "doppler/kernels/backend.h"
#include "doppler/kernels/onnx/model_kernels.h"
#include "doppler/kernels/program_kernels.h"

namespace doppler {

struct ThreadsOptions {
  // What ops do. Null: they compute the problem's program or model, as the next fields say.
  std::shared_ptr<Kernels> kernels = nullptr;
  // What computes, and in which memory: CUDA devices are open_cuda_backend(). Null: this processor.
  std::shared_ptr<Backend> backend = nullptr;
  // Values of the program's inputs, by name; the others are generated from the seed.
  std::map<std::string, Array> inputs = {};
  // Values of a model's inputs, likewise.
  std::map<std::string, model::Tensor> tensors = {};
  // What computes the nodes of a model. Null: the module doppler_models, opened on demand.
  const model::KernelLibrary* library = nullptr;
  std::uint64_t seed = 0;

  // Formations add their inputs in the graph's order, not as they arrive: the same bits in every run.
  bool deterministic = false;
  // A run in which no op ends for this long is given up, with a report of who waits for what.
  Seconds stall_after = 30;
  // A run ends early with RunCancelled when this is set to true, from anywhere.
  std::stop_token stop = {};
};

// Makes what the ops of the problem's program or model do, as the options say, and takes their inputs. Throws InputError
// if the problem has neither, or if an input does not fit.
std::shared_ptr<ComputingKernels> make_kernels(const Problem& problem, ThreadsOptions& options);

// Real kernels: each device is a thread of this process that is pinned to a core (and feeds a GPU, if that is where the
// backend computes), has a memory of its own, and receives copies of the tensors that others made.
//
// It follows the same rules as the simulator, with two differences: times are real, and an op that does not fit in
// memory waits instead of making the run infeasible. Devices need exactly one slot. If a kernel never returns, the run
// is given up, further runs are refused, and what the kernel uses stays alive until it returns.
class ThreadsExecutor final : public Executor {
 public:
  // Throws InputError if there is an obstacle, or if an input is not the program's or does not have its shape and
  // dtype.
  explicit ThreadsExecutor(const Problem& problem, ThreadsOptions options = {});

  // Says why the problem's program cannot be run; nothing if it can.
  static std::optional<std::string> obstacle(const Problem& problem);

  std::string_view name() const override { return "threads"; }
  const Problem& problem() const override { return runtime_.problem(); }
  ExecutorLimits limits() const override;
  Timeline run(const Placement& placement) override;
  Seconds time(const Placement& placement) override { return runtime_.execute(placement); }

  void results(const Placement& placement, const TakeResult& take) override;

  // Runs the program once more and returns its outputs and the next values of its updates, by expression. They are
  // valid until the next call. The ops must compute the problem's program.
  const Arrays& compute(const Placement& placement);
  // Runs the model once more and returns its outputs in their order. The ops must compute the problem's model.
  std::vector<model::Value> compute_model(const Placement& placement);

 private:
  struct Parts;
  void execute_keeping(const Placement& placement);
  ThreadsExecutor(const Problem& problem, Parts parts);

  std::shared_ptr<ComputingKernels> computing_;  // null: the ops do something else
  Runtime runtime_;
};

}  // namespace doppler
