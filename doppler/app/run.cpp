#include <algorithm>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/app/executor_flags.h"
#include "doppler/app/placements.h"
#include "doppler/app/serve.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/statistics.h"
#include "doppler/calibrate/rounds.h"
#include "doppler/kernels/npy.h"
#include "doppler/report/trace.h"
#include "doppler/sim/objective.h"
#include "doppler/sim/time_account.h"

namespace doppler {
namespace {

struct RunOptions : Options {
  std::string graph, placement, trace, output;
  ExecutorFlags executor;
  ServeOptions serve;
  unsigned repeat = 20, warmup = 3;
};

struct Measurement {
  std::vector<Seconds> times;
  Timeline timeline;  // of the last run
  Seconds predicted = 0;
  std::optional<Seconds> one_device;  // the median; nothing if one cannot hold the graph, or if interrupted
  bool interrupted = false;

  Seconds typical() const { return median(times); }
};

// Times the whole graph on the first device that may run all of it.
std::optional<Seconds> time_on_one_device(const LoadedProblem& loaded, Executor& executor, const RunOptions& options) {
  for (DeviceId device = 0; device < loaded.problem.device_count(); ++device) {
    bool allowed = true;
    for (OpId op = 0; op < loaded.problem.op_count(); ++op) allowed = allowed && loaded.problem.allows(op, device);
    if (!allowed) continue;
    try {
      const Placement one{std::vector<DeviceId>(loaded.problem.op_count(), device), {}, {}};
      return median(time_repeatedly(executor, one, std::min(options.warmup, 1U), std::max(options.repeat / 4, 1U)));
    } catch (const InfeasibleError&) {
      return std::nullopt;  // it does not fit, which is why people have several devices
    }
  }
  return std::nullopt;
}

// Runs the placement as often as asked. Ctrl-C keeps the runs that have ended.
Measurement take_measurement(const LoadedProblem& loaded, Executor& executor, const Placement& placement,
                             const RunOptions& options) {
  Measurement result;
  result.predicted = ExpectedObjective(loaded.problem).value(placement);
  ProgressLine progress(options.quiet, loaded.file.path, loaded.problem.graph().unitless());
  try {
    for (unsigned i = 0; i < options.warmup + options.repeat; ++i) {
      result.timeline = executor.run(placement);
      if (i >= options.warmup) result.times.push_back(result.timeline.makespan);
      progress.show_text("run", fmt::format("{} of {}, {}", i + 1, options.warmup + options.repeat,
                                            show_time(loaded, result.timeline.makespan)));
    }
    result.one_device = time_on_one_device(loaded, executor, options);
  } catch (const RunCancelled&) {
    result.interrupted = true;
    if (result.times.empty()) throw InputError("run: interrupted before a run had ended; nothing was measured");
  }
  return result;
}

RunResult result_of(const LoadedProblem& loaded, const Measurement& measured, const RunOptions& options) {
  RunResult result;
  result.graph = loaded.file.path;
  result.machine = loaded.problem.machine().name();
  result.devices = options.executor.devices;
  result.unitless = loaded.problem.graph().unitless();
  result.measured = measured.typical();
  result.times = measured.times;
  result.predicted = measured.predicted;
  result.one_device = measured.one_device;
  result.interrupted = measured.interrupted;
  result.last = measured.timeline.makespan;
  const std::vector<DeviceTime> times = account_time(loaded.problem, measured.timeline);
  const std::vector<DeviceUse> uses = device_uses(measured.timeline, loaded.problem.machine());
  for (std::size_t device = 0; device < uses.size(); ++device)
    result.device_times.push_back({uses[device].name, uses[device].ops, times[device], uses[device].peak_memory});
  return result;
}

// Runs the program once more and writes a file per output and per value that an update computes.
void write_results(ThreadsExecutor& executor, const Placement& placement, const std::string& directory) {
  const program::Program& program = *executor.problem().program()->program;
  for (const auto& [id, array] : executor.compute(placement)) {
    std::string name = program.node(id).name;
    std::replace(name.begin(), name.end(), '/', '_');
    write_file_atomically(fmt::format("{}/{}.npy", directory, name), to_npy(array));
  }
}

void run_verb(RunOptions options) {
  if (options.repeat == 0) throw InputError("--repeat: found 0; required at least 1");
  if (!options.output.empty()) {
    if (options.executor.emulated())
      throw InputError("--output: required --devices cpu or cuda, emulated devices compute nothing");
    std::error_code failed;
    std::filesystem::create_directories(options.output, failed);
    if (failed)
      throw InputError(fmt::format("--output: '{}': {}; required a directory", options.output, failed.message()));
  }
  PlacementFile file = read_placement(options.placement);
  if (options.machine.empty()) options.machine = machine_of(options.placement, file);
  const LoadedProblem loaded = load(options.graph, options, Purpose::execution);
  const Placement placement =
      placement_for(options.placement, std::move(file), loaded.problem, options.quiet, "running");
  if (options.serve.learn) return serve(loaded, options.executor, placement, options.serve, options);
  Measurement measured;
  if (options.executor.emulated()) {
    measured = take_measurement(loaded, *make_emulated_executor(loaded, options.executor), placement, options);
  } else {
    const auto executor = make_threads_executor(loaded, options.executor, options.seed);
    measured = take_measurement(loaded, *executor, placement, options);
    if (!options.output.empty() && !measured.interrupted) write_results(*executor, placement, options.output);
  }
  if (!options.trace.empty())
    write_file_atomically(options.trace,
                          timeline_to_trace(measured.timeline, loaded.problem.graph(), loaded.problem.machine()));
  present(options, result_of(loaded, measured, options));
}

}  // namespace

void add_run(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("run", "Execute a placement for real and time it");
  auto options = std::make_shared<RunOptions>();
  verb->add_option("graph", options->graph,
                   "A graph with its program (doppler generate, lower) or, emulated, any graph")
      ->required();
  verb->add_option("placement", options->placement, "A placement file, as 'doppler place -o' writes")->required();
  add_machine_flag(*verb, *options, false);
  add_executor_flags(*verb, options->executor);
  verb->add_option("--repeat", options->repeat, "Runs that count")->check(whole_number())->capture_default_str();
  verb->add_option("--warmup", options->warmup, "Runs before them")->check(whole_number())->capture_default_str();
  verb->add_option("--trace", options->trace, "The last run for ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE");
  verb->add_option("--output", options->output, "A directory for the program's results, as .npy")->type_name("DIR");
  add_serve_flags(*verb, options->serve);
  add_rule_flags(*verb, *options);
  add_graph_flags(*verb, *options);
  add_output_flags(*verb, *options);
  verb->footer(
      "Example:\n  doppler generate chainmm --size 2048 --parts 8 -o g.json\n  doppler calibrate g.json -o box.json\n"
      "  doppler place g.json --machine box.json -o p.json\n  doppler run g.json p.json --machine box.json");
  verb->callback([options] { run_verb(*options); });
}

}  // namespace doppler
