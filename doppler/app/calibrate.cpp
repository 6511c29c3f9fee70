#include "doppler/app/console.h"
#include "doppler/app/executor_flags.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/pin_thread.h"
#include "doppler/base/statistics.h"
#include "doppler/calibrate/calibration_runs.h"
#include "doppler/report/table.h"

namespace doppler {
namespace {

struct CalibrateOptions : Options {
  std::vector<std::string> graphs;
  std::string output = "-";
  ExecutorFlags executor;
  DeviceId count = 0;
  unsigned placements = 12, repeat = 10;
};

// Makes one graph ready to run.
CalibrationWorkload make_workload(const GraphFile& file, const Machine& machine, const CalibrateOptions& options) {
  const LoadedProblem loaded{file, make_problem(file, machine, load_options(options))};
  return {file.path, make_executor(loaded, options.executor, options.seed),
          calibration_placements(loaded.problem, options.placements, options.seed)};
}

// Measures all graphs. Ctrl-C keeps what was measured.
void observe(std::vector<CalibrationWorkload>& workloads, const CalibrateOptions& options, Calibration& calibration) {
  ProgressLine progress(options.quiet, "calibrate", false);
  CalibrationRunOptions how{options.repeat, options.seed};
  how.on_round = [&](unsigned round, const CalibrationWorkload& workload) {
    progress.show_text("calibrate", fmt::format("round {} of {}, {}", round, options.repeat, workload.name));
  };
  const bool completed = run_calibration(workloads, how, calibration);
  if (!calibration.empty()) return;
  if (!completed) throw InputError("calibrate: interrupted before anything was measured");
  throw InfeasibleError("calibrate: no random placement fits in memory; required devices with more of it");
}

std::string describe(const Calibration& calibration, const Machine& base, const Machine& machine, bool emulated) {
  const std::string jitter = fmt::format("times vary by {:.1f} % within a run\n", 100 * calibration.jitter());
  if (emulated) {
    const Seconds op = machine.device(0).overhead - base.device(0).overhead;
    if (machine.device_count() == 1)
      return fmt::format("ops take {} longer than modelled\n", format_seconds(op)) + jitter;
    return fmt::format("ops take {} and transfers {} longer than modelled\n", format_seconds(op),
                       format_seconds(machine.link(0, 1).latency - base.link(0, 1).latency)) +
           jitter;
  }
  Table table({{"kind", Table::Align::left},
               {"dtype", Table::Align::left},
               {"shapes"},
               {"runs"},
               {"GFLOP/s"},
               {"GB/s"},
               {"spread"},
               {"beside others"}});
  for (const Calibration::Kind& kind : calibration.kinds())
    table.add_row({kind.kind, kind.dtype, fmt::to_string(kind.shapes), fmt::to_string(kind.samples),
                   fmt::format("{:.2f}", kind.flops_per_second / 1e9),
                   fmt::format("{:.2f}", kind.bytes_per_second / 1e9), fmt::format("{:.0f} %", 100 * kind.spread),
                   kind.interference ? fmt::format("{:+.0f} %", 100 * (*kind.interference - 1)) : "-"});
  std::string text = table.text();
  if (machine.device_count() > 1) {
    const Link& link = machine.link(0, 1);
    const std::string rate = link.bytes_per_second > 0 ? fmt::format("+ {:.2f} GB/s", link.bytes_per_second / 1e9)
                                                       : "each";  // transfers of one size only
    text += fmt::format("\nlinks: {} {} ({} transfers), {}\n", format_seconds(link.latency), rate,
                        calibration.transfers(), to_string(machine.link_model()));
  }
  return text + jitter +
         fmt::format("runs take {:.3f} times what their ops and transfers explain; the machine's times contain it\n",
                     calibration.stretch());
}

void run_calibrate(const CalibrateOptions& options) {
  const bool emulated = options.executor.emulated();
  if (emulated && options.machine.empty())
    throw InputError("calibrate: no machine; required --machine, the one to emulate");
  if (options.placements == 0 || options.repeat == 0)
    throw InputError("--placements, --repeat: found 0; required at least 1");
  if (options.count > 0 && !options.machine.empty())
    throw InputError("calibrate: found --count and --machine; required one of them");
  const bool cuda = options.executor.devices == "cuda";
  if (cuda && options.count == 0 && options.machine.empty())
    throw InputError("calibrate: no number of GPUs; required --count or --machine");
  const DeviceId count = options.count > 0 ? options.count : usable_cores();
  const Machine base = options.machine.empty() ? bare_machine(cuda ? "gpu" : "cpu", count) : machine_from(options);
  Calibration calibration(base, emulated);
  std::vector<CalibrationWorkload> workloads;
  if (options.graphs.empty())
    for (const GraphFile& file : standard_graphs(base.device_count()))
      workloads.push_back(make_workload(file, base, options));
  for (const std::string& path : options.graphs)
    workloads.push_back(make_workload(load_graph(path, &base, options, Purpose::execution), base, options));
  observe(workloads, options, calibration);
  // Another name than the preset's: a placement says for which machine it was made.
  const Machine machine = calibration.machine(
      options.machine.empty() ? base.name() : base.name() + (emulated ? ", emulated" : ", calibrated"));
  write_file_atomically(options.output, machine_to_json(machine));
  if (options.output != "-" && !options.quiet) print_text(options, describe(calibration, base, machine, emulated));
}

}  // namespace

void add_calibrate(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("calibrate", "Measure this box and write a machine file that predicts it");
  auto options = std::make_shared<CalibrateOptions>();
  verb->add_option("graphs", options->graphs,
                   "Graphs with programs (doppler generate, lower) whose ops are measured; none: a standard set");
  add_machine_flag(*verb, *options, false);
  verb->add_option("--count", options->count, "Devices, one core (or GPU) each; 0: as many as there are cores")
      ->check(whole_number())
      ->capture_default_str();
  add_executor_flags(*verb, options->executor);
  verb->add_option("--placements", options->placements, "Random placements per graph")
      ->check(whole_number())
      ->capture_default_str();
  verb->add_option("--repeat", options->repeat, "Runs of each")->check(whole_number())->capture_default_str();
  verb->add_option("-o,--output", options->output, "Where the machine file goes; - is standard output")
      ->type_name("FILE")
      ->capture_default_str();
  add_rule_flags(*verb, *options);
  add_graph_flags(*verb, *options);
  verb->add_flag("-q,--quiet", options->quiet, "No progress, no table");
  verb->footer("Example:\n  doppler calibrate g.json -o box.json && doppler place g.json --machine box.json -o p.json");
  verb->callback([options] { run_calibrate(*options); });
}

}  // namespace doppler
