#include "doppler/run.h"

#include <algorithm>

#include "doppler/api/judge.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/statistics.h"
#include "doppler/calibrate/rounds.h"
#include "doppler/engine/emulated/emulated_executor.h"
#include "doppler/engine/threads/threads_executor.h"
#include "doppler/kernels/aten/open_cuda_backend.h"
#include "doppler/kernels/generate_inputs.h"
#include "doppler/kernels/npy.h"
#include "doppler/kernels/onnx/tensor_npy.h"
#include "doppler/objective.h"
#include "doppler/program/text/program_json.h"

namespace doppler {
namespace {

std::map<std::string, Array> read_inputs(const program::Program& program,
                                         const std::map<std::string, std::string>& files) {
  std::map<std::string, Array> inputs;
  for (const auto& [name, path] : files) {
    const auto id = find_input(program, name);
    if (!id) throw InputError(fmt::format("--input: found '{}'; required the name of an input of the program", name));
    const program::Node& node = program.node(*id);
    Array array = parse_npy(path, read_file(path));
    if (array.shape != node.shape || array.dtype != node.dtype)
      throw InputError(fmt::format("{}: found {} {}; required {} {} for input '{}'", path, to_string(array.dtype),
                                   program::to_string(array.shape), to_string(node.dtype),
                                   program::to_string(node.shape), name));
    inputs[name] = std::move(array);
  }
  return inputs;
}

model::Tensor read_model_input(const model::RunnableModel& model, const std::string& name, const std::string& path) {
  const model::ValueIndex value = model.find_input(name);
  if (value == model::kAbsent)
    throw InputError(fmt::format("--input: found '{}'; required the name of an input of the model", name));
  model::Tensor tensor = model::read_tensor(path);
  if (const model::TensorType& type = model.values[value].type; tensor.type != type)
    throw InputError(
        fmt::format("{}: found {}; required {} for input '{}'", path, to_string(tensor.type), to_string(type), name));
  return tensor;
}

std::shared_ptr<Executor> make_emulated(const Problem& problem, const ExecutorOptions& options) {
  if (!options.inputs.empty())
    throw InputError("--input: required --devices cpu or cuda, emulated devices compute nothing");
  auto executor = std::make_shared<EmulatedExecutor>(
      problem,
      EmulatedOptions{.time_scale = options.time_scale, .stall_after = options.stall_after, .stop = options.stop});
  for (const auto& [device, factor] : options.slowdown) {
    if (device >= problem.device_count() || !(factor > 0))
      throw InputError(
          fmt::format("slowdown: found device {} and factor {}; required a device below {} and a factor above 0",
                      device, factor, problem.device_count()));
    executor->slow_down(device, factor);
  }
  return executor;
}

std::shared_ptr<Executor> make_threads(const Problem& problem, const ExecutorOptions& options) {
  if (!options.slowdown.empty() || options.time_scale != 0)
    throw InputError("--slowdown, --time-scale: required --devices emulated");
  if (problem.program() == nullptr && problem.model() == nullptr)
    throw InputError(
        fmt::format("{}: found no program, only costs; required an ONNX model that is not cut, a graph from 'doppler "
                    "generate' or 'doppler lower' whose kernels can run, or --devices emulated",
                    options.graph.empty() ? problem.graph().title() : options.graph));
  ThreadsOptions threads;
  threads.stall_after = options.stall_after;
  if (options.devices == "cuda") threads.backend = open_cuda_backend(problem.device_count());
  if (problem.model() != nullptr)
    for (const auto& [name, path] : options.inputs)
      threads.tensors[name] = read_model_input(*problem.model(), name, path);
  else
    threads.inputs = read_inputs(*problem.program()->program, options.inputs);
  threads.seed = options.seed;
  threads.deterministic = options.deterministic;
  threads.stop = options.stop;
  return std::make_shared<ThreadsExecutor>(problem, std::move(threads));
}

// Times the whole graph on the first device that may run all of it.
std::optional<Seconds> time_on_one_device(Executor& executor, const MeasureOptions& options) {
  const Problem& problem = executor.problem();
  for (DeviceId device = 0; device < problem.device_count(); ++device) {
    if (!may_run_all(problem, device)) continue;
    try {
      const Placement one{std::vector<DeviceId>(problem.op_count(), device), {}, {}};
      return median(time_repeatedly(executor, one, std::min(options.warmup, 1U), std::max(options.repeat / 4, 1U)));
    } catch (const InfeasibleError&) {
      return std::nullopt;  // it does not fit, which is why people have several devices
    }
  }
  return std::nullopt;
}

}  // namespace

std::shared_ptr<Executor> make_executor(const Problem& problem, const ExecutorOptions& options) {
  if (options.devices == "emulated") return make_emulated(problem, options);
  if (options.devices == "cpu" || options.devices == "cuda") return make_threads(problem, options);
  throw InputError(fmt::format("devices: found '{}'; required cpu, cuda or emulated", options.devices));
}

RunResult run(Executor& executor, const Placement& placement, const MeasureOptions& options, Timeline* last) {
  if (options.repeat == 0) throw InputError("--repeat: found 0; required at least 1");
  const Problem& problem = executor.problem();
  RunResult result;
  result.graph = problem.graph().title();
  result.machine = problem.machine().name();
  result.devices = executor.name();
  result.unitless = problem.graph().unitless();
  result.timed_one_device = options.one_device;
  result.predicted = ExpectedObjective(problem).value(placement);
  Timeline timeline;
  try {
    for (unsigned i = 0; i < options.warmup + options.repeat; ++i) {
      timeline = executor.run(placement);
      if (i >= options.warmup) result.times.push_back(timeline.makespan);
      if (options.on_run) options.on_run(i, timeline.makespan);
    }
    if (options.one_device) result.one_device = time_on_one_device(executor, options);
  } catch (const RunCancelled&) {
    result.interrupted = true;
    if (result.times.empty()) throw;
  }
  result.measured = median(result.times);
  result.last = timeline.makespan;
  const std::vector<DeviceTime> times = account_time(problem, timeline);
  const std::vector<DeviceUse> uses = device_uses(timeline, problem.machine());
  for (std::size_t device = 0; device < uses.size(); ++device)
    result.device_times.push_back({uses[device].name, uses[device].ops, times[device], uses[device].peak_memory});
  if (last != nullptr) *last = std::move(timeline);
  return result;
}

}  // namespace doppler
