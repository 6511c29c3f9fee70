#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

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
#include "doppler/report/summary.h"
#include "doppler/report/table.h"
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

std::string device_times(const LoadedProblem& loaded, const Timeline& timeline) {
  Table table({{"device", Table::Align::left},
               {"ops"},
               {"busy"},
               {"copying"},
               {"data"},
               {"channel"},
               {"memory"},
               {"done"},
               {"peak memory"}});
  const std::vector<DeviceTime> times = account_time(loaded.problem, timeline);
  const std::vector<DeviceUse> uses = device_uses(timeline, loaded.problem.machine());
  for (DeviceId device = 0; device < loaded.problem.machine().device_count(); ++device) {
    const auto share = [&](Seconds part) { return fmt::format("{:.1f} %", 100 * part / timeline.makespan); };
    const DeviceTime& time = times[device];
    table.add_row({loaded.problem.machine().device(device).name, fmt::to_string(uses[device].ops), share(time.busy),
                   share(time.copying), share(time.data), share(time.channel), share(time.memory), share(time.done),
                   format_bytes(timeline.peak_memory[device])});
  }
  return table.text();
}

std::string describe(const LoadedProblem& loaded, const Measurement& measured, const RunOptions& options) {
  const Seconds typical = measured.typical();
  std::string text = fmt::format("measured    {}  (median of {}; 10 % to 90 %: {} to {})\n", show_time(loaded, typical),
                                 measured.times.size(), show_time(loaded, quantile(measured.times, 0.1)),
                                 show_time(loaded, quantile(measured.times, 0.9)));
  text += fmt::format("predicted   {}  ({:+.1f} %)\n", show_time(loaded, measured.predicted),
                      100 * (measured.predicted / typical - 1));
  if (measured.one_device)
    text += fmt::format("one device  {}  (speed-up {:.2f})\n", show_time(loaded, *measured.one_device),
                        *measured.one_device / typical);
  else if (!measured.interrupted)
    text += "one device  cannot hold the graph\n";
  if (options.executor.emulated()) text += "devices     emulated: ops take their modelled time\n";
  return text + "\n" + device_times(loaded, measured.timeline);
}

std::string to_json(const LoadedProblem& loaded, const Measurement& measured, const RunOptions& options) {
  nlohmann::ordered_json result = {{"graph", loaded.file.path},
                                   {"machine", loaded.problem.machine().name()},
                                   {"devices", options.executor.devices},
                                   {"measured", measured.typical()},
                                   {"times", measured.times},
                                   {"predicted", measured.predicted}};
  if (measured.one_device) {
    result["one_device"] = *measured.one_device;
    result["speed_up"] = *measured.one_device / measured.typical();
  }
  for (const DeviceTime& time : account_time(loaded.problem, measured.timeline))
    result["device_times"].push_back({{"busy", time.busy},
                                      {"copying", time.copying},
                                      {"data", time.data},
                                      {"channel", time.channel},
                                      {"memory", time.memory},
                                      {"done", time.done}});
  return result.dump(2) + "\n";
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
  write_json_if_asked(options, to_json(loaded, measured, options));
  print_text(options, describe(loaded, measured, options));
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
