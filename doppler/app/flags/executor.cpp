#include "doppler/app/flags/executor.h"

#include "doppler/app/console.h"
#include "doppler/base/error.h"
#include "doppler/run.h"

namespace doppler {
namespace {

// Splits "name=value" at the last '='.
std::pair<std::string, std::string> split_pair(const std::string& text, const char* flag, const char* required) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw InputError(fmt::format("{}: found '{}'; required {}", flag, text, required));
  return {text.substr(0, equals), text.substr(equals + 1)};
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
  verb.add_option("--devices", flags.devices,
                  "cpu: real kernels, a pinned core per device; cuda: real kernels, device i is GPU i; emulated: every "
                  "op takes its modelled time")
      ->check(CLI::IsMember({"cpu", "cuda", "emulated"}))
      ->capture_default_str();
  verb.add_option("--engine", flags.engine,
                  "What runs cpu devices: threads, our own runtime; starpu, StarPU with the same kernels")
      ->check(CLI::IsMember({"threads", "starpu"}))
      ->capture_default_str();
  verb.add_option("--time-scale", flags.time_scale,
                  "Emulated: real seconds per modelled second or unit; 0: 1, or half a second per run without a unit")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  verb.add_option("--slowdown", flags.slowdown, "Emulated: device=factor, this device takes longer than modelled");
  verb.add_option("--input", flags.inputs,
                  "name=file.npy, of a model also file.pb: the value of an input; the others are generated");
  verb.add_flag("--deterministic", flags.deterministic, "Add up partial results in a fixed order: same bits every run");
  verb.add_option("--stall-after", flags.stall_after, "Give up if no op ends for this long")->capture_default_str();
}

std::shared_ptr<Executor> make_executor(const LoadedProblem& loaded, const ExecutorFlags& flags, const Options& verb) {
  ExecutorOptions options;
  options.graph = loaded.file.path;
  options.devices = flags.devices;
  options.engine = flags.engine;
  options.time_scale = flags.time_scale;
  for (const std::string& text : flags.slowdown) {
    const auto [name, factor] = split_pair(text, "--slowdown", "device=factor");
    options.slowdown[loaded.problem.machine().device_by_name(name)] = parse_factor(factor);
  }
  for (const std::string& text : flags.inputs) options.inputs.insert(split_pair(text, "--input", "name=file.npy"));
  options.deterministic = flags.deterministic;
  options.stall_after = parse_duration(flags.stall_after, "--stall-after");
  options.seed = verb.seed;
  options.stop = interruption();
  std::shared_ptr<Executor> executor = doppler::make_executor(loaded.problem, options);
  if (const DeviceId cores = executor->limits().undisturbed_devices;
      loaded.problem.device_count() > cores && !verb.quiet)
    complain(fmt::format("warning: {} devices share {} cores; times say little", loaded.problem.device_count(), cores));
  return executor;
}

}  // namespace doppler
