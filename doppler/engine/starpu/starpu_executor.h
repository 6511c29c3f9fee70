#pragma once

#include <memory>
#include <optional>
#include <string>

#include "doppler/engine/threads/threads_executor.h"
#include "doppler/executor.h"

namespace doppler {

class TaskEngine;

// The same kernels as ThreadsExecutor runs, by StarPU (Augonnet et al. 2011) instead of our own runtime: a task per op,
// pinned to the worker of its device, in the order that the discipline says; dependencies, memory and threads are
// StarPU's. Its workers are cores of one memory, so that a tensor is handed over without a copy, and the capacities of
// devices are not enforced. Formations add up in the graph's order: the same bits in every run.
class StarpuExecutor final : public Executor {
 public:
  // `options` as for threads; `backend` must be null. Throws InputError if there is an obstacle, if the module
  // doppler_starpu is not there, or if StarPU has fewer workers than the problem has devices.
  StarpuExecutor(const Problem& problem, ThreadsOptions options);
  ~StarpuExecutor() override;

  // Says why the problem cannot be run; nothing if it can.
  static std::optional<std::string> obstacle(const Problem& problem);

  std::string_view name() const override { return "starpu"; }
  const Problem& problem() const override { return problem_; }
  ExecutorLimits limits() const override;
  Timeline run(const Placement& placement) override;
  void results(const Placement& placement, const TakeResult& take) override;

 private:
  struct Run;

  Problem problem_;
  std::shared_ptr<ComputingKernels> computing_;  // null: the ops do something else
  std::shared_ptr<Kernels> kernels_;
  Seconds stall_after_;
  std::stop_token stop_;
  std::shared_ptr<TaskEngine> engine_;
  std::shared_ptr<Run> run_;  // shared with tasks that may never end
};

}  // namespace doppler
