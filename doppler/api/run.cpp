#include "doppler/run.h"

#include <algorithm>
#include <numeric>

#include "doppler/api/judge.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/statistics.h"
#include "doppler/engine/emulated/emulated_executor.h"
#include "doppler/engine/starpu/starpu_executor.h"
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
        fmt::format("{}: found no program, only costs; required an ONNX model (cut only for a machine with shared "
                    "links), a graph from 'doppler "
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
  if (options.engine == "starpu") return std::make_shared<StarpuExecutor>(problem, std::move(threads));
  return std::make_shared<ThreadsExecutor>(problem, std::move(threads));
}

// Beyond this share of time on others' account, or this difference between slow and fast runs (nine tenths and one tenth
// are quicker) over the median, a time says more about the box than about the placement.
constexpr double kMostOthers = 0.05, kMostSpread = 0.5;

std::string noise_of(const RunResult& result) {
  constexpr std::size_t kEnoughRuns = 5;
  if (result.others > kMostOthers)
    return fmt::format("other processes had the cores for {:.0f} % of the time; required at most {:.0f} %",
                       100 * result.others, 100 * kMostOthers);
  if (result.devices == "emulated" || result.times.size() < kEnoughRuns) return {};
  const double spread = (quantile(result.times, 0.9) - quantile(result.times, 0.1)) / result.measured;
  if (spread <= kMostSpread) return {};
  return fmt::format(
      "one run in ten is {:.0f} % of the median slower than another one in ten; required at most {:.0f} %",
      100 * spread, 100 * kMostSpread);
}

// Tells when the time for measuring is up.
class Deadline {
 public:
  explicit Deadline(Seconds time) : budget_(time > 0 ? Budget::for_time(time) : Budget::unlimited()) {}
  bool over() const { return budget_.out_of_time(); }
  bool half_over(Seconds time) const { return time > 0 && budget_.time_left() < time / 2; }

 private:
  Budget budget_;
};

// Times the whole graph on the first device that may run all of it, for as long as there is time, and once at least.
std::optional<Seconds> time_on_one_device(Executor& executor, const MeasureOptions& options, const Deadline& deadline) {
  const Problem& problem = executor.problem();
  for (DeviceId device = 0; device < problem.device_count(); ++device) {
    if (!may_run_all(problem, device)) continue;
    try {
      const Placement one{std::vector<DeviceId>(problem.op_count(), device), {}, {}};
      if (options.warmup > 0 && !deadline.over()) executor.run(one);
      std::vector<Seconds> times;
      for (unsigned i = 0; i < std::max(options.repeat / 4, 1U) && (i == 0 || !deadline.over()); ++i)
        times.push_back(executor.run(one).makespan);
      return median(times);
    } catch (const InfeasibleError&) {
      return std::nullopt;  // it does not fit, which is why people have several devices
    }
  }
  return std::nullopt;
}

}  // namespace

std::shared_ptr<Executor> make_executor(const Problem& problem, const ExecutorOptions& options) {
  if (options.engine != "threads" && options.engine != "starpu")
    throw InputError(fmt::format("engine: found '{}'; required threads or starpu", options.engine));
  if (options.engine == "starpu" && options.devices != "cpu")
    throw InputError(fmt::format("--engine starpu: found --devices {}; required cpu", options.devices));
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
  result.asked_for = options.repeat;
  Timeline timeline;
  Seconds others = 0, all = 0;
  const Deadline deadline(options.time);
  try {
    for (unsigned i = 0; i < options.warmup + options.repeat; ++i) {
      if (i < options.warmup && i > 0 && deadline.half_over(options.time)) continue;  // Runs that count come first.
      if (!result.times.empty() && deadline.over()) break;
      timeline = executor.run(placement);
      if (i >= options.warmup) {
        result.times.push_back(timeline.makespan);
        others += std::accumulate(timeline.others.begin(), timeline.others.end(), 0.0);
        all += timeline.makespan * static_cast<double>(timeline.others.size());
      }
      if (options.on_run) options.on_run(i, timeline.makespan);
    }
    if (options.one_device) result.one_device = time_on_one_device(executor, options, deadline);
  } catch (const RunCancelled&) {
    result.interrupted = true;
    if (result.times.empty()) throw;
  }
  result.measured = median(result.times);
  result.others = all > 0 ? others / all : 0;
  result.noise = noise_of(result);
  result.last = timeline.makespan;
  const std::vector<DeviceTime> times = account_time(problem, timeline);
  const std::vector<DeviceUse> uses = device_uses(timeline, problem.machine());
  for (std::size_t device = 0; device < uses.size(); ++device)
    result.device_times.push_back({uses[device].name, uses[device].ops, times[device], uses[device].peak_memory});
  if (last != nullptr) *last = std::move(timeline);
  return result;
}

}  // namespace doppler
