#include "doppler/app/executor_flags.h"

#include "doppler/app/console.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/kernels/aten/open_cuda_backend.h"
#include "doppler/kernels/generate_inputs.h"
#include "doppler/kernels/npy.h"

namespace doppler {
namespace {

// Splits "name=value" at the last '='.
std::pair<std::string, std::string> split_pair(const std::string& text, const char* flag, const char* required) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw InputError(fmt::format("{}: found '{}'; required {}", flag, text, required));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::map<std::string, Array> read_inputs(const program::Program& program, const std::vector<std::string>& files) {
  std::map<std::string, Array> inputs;
  for (const std::string& text : files) {
    const auto [name, path] = split_pair(text, "--input", "name=file.npy");
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

double parse_factor(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !(value > 0) || value > 1e6)
    throw InputError(fmt::format("--slowdown: found '{}'; required a factor above 0", text));
  return value;
}

}  // namespace

void add_executor_flags(CLI::App& verb, ExecutorFlags& flags) {
  verb.add_option("--engine", flags.engine, "What executes: threads of this process")
      ->check(CLI::IsMember({"threads"}))
      ->capture_default_str();
  verb.add_option("--devices", flags.devices,
                  "cpu: real kernels, a pinned core per device; cuda: real kernels, device i is GPU i; emulated: every "
                  "op takes its modelled time")
      ->check(CLI::IsMember({"cpu", "cuda", "emulated"}))
      ->capture_default_str();
  verb.add_option("--time-scale", flags.time_scale,
                  "Emulated: real seconds per modelled second or unit; 0: 1, or half a second per run without a unit")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  verb.add_option("--slowdown", flags.slowdown, "Emulated: device=factor, this device takes longer than modelled");
  verb.add_option("--input", flags.inputs, "name=file.npy, the value of an input; the others are generated");
  verb.add_flag("--deterministic", flags.deterministic, "Add up partial results in a fixed order: same bits every run");
  verb.add_option("--stall-after", flags.stall_after, "Give up if no op ends for this long")->capture_default_str();
}

std::shared_ptr<Executor> make_executor(const LoadedProblem& loaded, const ExecutorFlags& flags, std::uint64_t seed) {
  if (flags.emulated()) return make_emulated_executor(loaded, flags);
  return make_threads_executor(loaded, flags, seed);
}

std::shared_ptr<ThreadsExecutor> make_threads_executor(const LoadedProblem& loaded, const ExecutorFlags& flags,
                                                       std::uint64_t seed) {
  const Problem& problem = loaded.problem;
  if (!flags.slowdown.empty() || flags.time_scale != 0)
    throw InputError("--slowdown, --time-scale: required --devices emulated");
  if (problem.program() == nullptr)
    throw InputError(
        fmt::format("{}: found no program, only costs; required a graph from 'doppler generate' or 'doppler lower' "
                    "whose kernels can run, or --devices emulated",
                    loaded.file.path));
  ThreadsOptions options;
  options.stall_after = parse_duration(flags.stall_after, "--stall-after");
  if (flags.devices == "cuda") options.backend = open_cuda_backend(problem.device_count());
  options.inputs = read_inputs(*problem.program()->program, flags.inputs);
  options.seed = seed;
  options.deterministic = flags.deterministic;
  options.interrupted = interrupt_flag();
  auto executor = std::make_shared<ThreadsExecutor>(problem, std::move(options));
  if (const DeviceId cores = executor->limits().undisturbed_devices; problem.device_count() > cores)
    complain(fmt::format("warning: {} devices share {} cores; times say little", problem.device_count(), cores));
  return executor;
}

std::shared_ptr<EmulatedExecutor> make_emulated_executor(const LoadedProblem& loaded, const ExecutorFlags& flags) {
  if (!flags.inputs.empty())
    throw InputError("--input: required --devices cpu or cuda, emulated devices compute nothing");
  const EmulatedOptions options{.time_scale = flags.time_scale,
                                .stall_after = parse_duration(flags.stall_after, "--stall-after"),
                                .interrupted = interrupt_flag()};
  auto executor = std::make_shared<EmulatedExecutor>(loaded.problem, options);
  for (const std::string& text : flags.slowdown) {
    const auto [name, factor] = split_pair(text, "--slowdown", "device=factor");
    const double value = parse_factor(factor);
    executor->slow_down(loaded.problem.machine().device_by_name(name), value);
  }
  return executor;
}

}  // namespace doppler
