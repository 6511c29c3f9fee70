#include "doppler/engine/threads/threads_executor.h"

#include "doppler/base/error.h"
#include "doppler/base/pin_thread.h"
#include "doppler/engine/threads/thread_devices.h"
#include "doppler/kernels/generate_inputs.h"
#include "doppler/kernels/npy.h"
#include "doppler/program/text/program_json.h"

namespace doppler {
namespace {

void take_inputs(const program::Program& program, std::map<std::string, Array> given, Arrays& inputs) {
  for (auto& [name, array] : given) {
    const auto id = find_input(program, name);
    if (!id) throw InputError(fmt::format("inputs: found '{}'; required the name of an input of the program", name));
    inputs[*id] = std::move(array);
  }
}

std::shared_ptr<ProgramKernels> kernels_of(const Problem& problem, ThreadsOptions& options) {
  if (const auto why = ThreadsExecutor::obstacle(problem)) throw InputError(*why);
  const program::RunnableProgram& runnable = *problem.program();
  Arrays inputs = generate_inputs(*runnable.program, options.seed);
  take_inputs(*runnable.program, std::move(options.inputs), inputs);
  return std::make_shared<ProgramKernels>(
      *runnable.program, runnable.lowered, std::move(inputs), generate_variables(*runnable.program),
      options.backend != nullptr ? options.backend : make_host_backend(problem.device_count()));
}

}  // namespace

struct ThreadsExecutor::Parts {
  std::shared_ptr<ProgramKernels> program_kernels;
  std::shared_ptr<Kernels> kernels;
  RuntimeOptions runtime;

  explicit Parts(const Problem& problem, ThreadsOptions options)
      : program_kernels(options.kernels == nullptr ? kernels_of(problem, options) : nullptr),
        kernels(options.kernels == nullptr ? program_kernels : options.kernels),
        runtime{options.deterministic, options.stall_after, options.stop} {}
};

ThreadsExecutor::ThreadsExecutor(const Problem& problem, ThreadsOptions options)
    : ThreadsExecutor(problem, Parts(problem, std::move(options))) {}

ThreadsExecutor::ThreadsExecutor(const Problem& problem, Parts parts)
    : program_kernels_(std::move(parts.program_kernels)),
      runtime_(problem, std::make_shared<ThreadDevices>(problem, std::move(parts.kernels)), parts.runtime) {}

std::optional<std::string> ThreadsExecutor::obstacle(const Problem& problem) {
  if (problem.program() == nullptr)
    return fmt::format(
        "graph '{}': found no program, only costs; required a graph that was lowered from a program, or emulated "
        "devices",
        problem.graph().title());
  return Runtime::obstacle(problem);
}

ExecutorLimits ThreadsExecutor::limits() const { return {.computes = true, .undisturbed_devices = usable_cores()}; }

Timeline ThreadsExecutor::run(const Placement& placement) {
  runtime_.execute(placement);
  return runtime_.timeline();
}

void ThreadsExecutor::results(const Placement& placement, const TakeResult& take) {
  const program::Program& program = *problem().program()->program;
  for (const auto& [id, array] : compute(placement)) take(program.node(id).name, to_npy(array));
}

const Arrays& ThreadsExecutor::compute(const Placement& placement) {
  DOPPLER_CHECK(program_kernels_ != nullptr, "results of ops that compute no program");
  program_kernels_->keep_results(true);
  runtime_.execute(placement);
  program_kernels_->keep_results(false);
  return program_kernels_->results();
}

}  // namespace doppler
