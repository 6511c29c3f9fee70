#include "doppler/engine/threads/threads_executor.h"

#include "doppler/base/error.h"
#include "doppler/base/pin_thread.h"
#include "doppler/engine/threads/thread_devices.h"
#include "doppler/kernels/generate_inputs.h"
#include "doppler/kernels/onnx/cut_model_kernels.h"
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

}  // namespace

std::shared_ptr<ComputingKernels> make_kernels(const Problem& problem, ThreadsOptions& options) {
  if (const auto why = ThreadsExecutor::obstacle(problem)) throw InputError(*why);
  if (options.backend != nullptr && !options.backend->on_host() && problem.rules().links == Links::shared)
    throw InputError(fmt::format(
        "machine '{}': found shared links and devices with memories of their own; required --links free or channels",
        problem.machine().name()));
  if (problem.model() != nullptr) {
    if (options.backend != nullptr)
      throw InputError(fmt::format("{}: found a model and --devices cuda; required --devices cpu, models run there",
                                   problem.model()->where));
    const model::KernelLibrary& library = options.library != nullptr ? *options.library : model::open_kernel_library();
    const model::ModelInputs inputs{std::move(options.tensors), options.seed};
    if (!problem.model()->blocks.empty())
      return std::make_shared<model::CutModelKernels>(problem.model(), problem.graph(), library, inputs);
    return std::make_shared<model::ModelKernels>(problem.model(), problem.graph(), library, inputs);
  }
  const program::RunnableProgram& runnable = *problem.program();
  Arrays inputs = generate_inputs(*runnable.program, options.seed);
  take_inputs(*runnable.program, std::move(options.inputs), inputs);
  return std::make_shared<ProgramKernels>(
      *runnable.program, runnable.lowered, std::move(inputs), generate_variables(*runnable.program),
      options.backend != nullptr ? options.backend : make_host_backend(problem.device_count()));
}

struct ThreadsExecutor::Parts {
  std::shared_ptr<ComputingKernels> computing;
  std::shared_ptr<Kernels> kernels;
  RuntimeOptions runtime;

  explicit Parts(const Problem& problem, ThreadsOptions options)
      : computing(options.kernels == nullptr ? make_kernels(problem, options) : nullptr),
        kernels(options.kernels == nullptr ? computing : options.kernels),
        runtime{options.deterministic, options.stall_after, options.stop} {}
};

ThreadsExecutor::ThreadsExecutor(const Problem& problem, ThreadsOptions options)
    : ThreadsExecutor(problem, Parts(problem, std::move(options))) {}

ThreadsExecutor::ThreadsExecutor(const Problem& problem, Parts parts)
    : computing_(std::move(parts.computing)),
      runtime_(problem, std::make_shared<ThreadDevices>(problem, std::move(parts.kernels)), parts.runtime) {}

std::optional<std::string> ThreadsExecutor::obstacle(const Problem& problem) {
  if (problem.program() == nullptr && problem.model() == nullptr)
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
  execute_keeping(placement);
  computing_->take_results(take);
}

void ThreadsExecutor::execute_keeping(const Placement& placement) {
  DOPPLER_CHECK(computing_ != nullptr, "results of ops that compute no program");
  computing_->keep_results(true);
  runtime_.execute(placement);
  computing_->keep_results(false);
}

const Arrays& ThreadsExecutor::compute(const Placement& placement) {
  execute_keeping(placement);
  return dynamic_cast<ProgramKernels&>(*computing_).results();
}

std::vector<model::Value> ThreadsExecutor::compute_model(const Placement& placement) {
  execute_keeping(placement);
  return dynamic_cast<model::ComputingModel&>(*computing_).results();
}

}  // namespace doppler
