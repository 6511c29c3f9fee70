#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/app/flags/executor.h"
#include "doppler/app/product_shares.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/pin_thread.h"
#include "doppler/base/statistics.h"
#include "doppler/calibrate/calibration_runs.h"
#include "doppler/report/text.h"
#include "doppler/results.h"

namespace doppler {
namespace {

struct CalibrateOptions : Options {
  std::vector<std::string> graphs;
  std::string output = "-";
  ExecutorFlags executor;
  DeviceId count = 0;
  unsigned placements = 12, repeat = 10;
  std::string limit = "5m";
};

// The sigma of times beyond which what a placement takes is chance. Boxes that are left alone have a tenth of it.
constexpr double kMostUsefulJitter = 0.5;

// The share of the time that other processes may have had the cores.
constexpr double kMostOthersOfCalibration = 0.05;

// Why a calibration predicts little; empty: it does not.
std::string noise_of_calibration(const CalibrationResult& result) {
  if (result.jitter > kMostUsefulJitter)
    return fmt::format("equal ops differ by {:.0f} % within a run; required at most {:.0f} %", 100 * result.jitter,
                       100 * kMostUsefulJitter);
  if (result.others > kMostOthersOfCalibration)
    return fmt::format("other processes had the cores for {:.0f} % of the time; required at most {:.0f} %",
                       100 * result.others, 100 * kMostOthersOfCalibration);
  return {};
}

// Makes one graph ready to run.
CalibrationWorkload make_workload(const GraphFile& file, const Machine& machine, const CalibrateOptions& options) {
  const LoadedProblem loaded{file, make_problem(file, machine, load_options(options))};
  return {file.path, make_executor(loaded, options.executor, options),
          calibration_placements(loaded.problem, options.placements, options.seed)};
}

// Measures all graphs. Ctrl-C keeps what was measured.
void observe(std::vector<CalibrationWorkload>& workloads, const CalibrateOptions& options, Calibration& calibration) {
  ProgressLine progress(options.quiet, "calibrate", false);
  CalibrationRunOptions how{options.repeat, options.seed};
  how.budget = Budget::for_time(parse_duration(options.limit, "--time"));
  how.on_round = [&](unsigned round, const CalibrationWorkload& workload) {
    progress.show_text("calibrate", fmt::format("round {} of {}, {}", round, options.repeat, workload.name));
  };
  const bool completed = run_calibration(workloads, how, calibration);
  if (!calibration.empty()) return;
  if (!completed) throw RunCancelled("calibrate: interrupted before anything was measured");
  throw InfeasibleError("calibrate: no random placement fits in memory; required devices with more of it");
}

CalibrationResult result_of(const Calibration& calibration, const Machine& base, const Machine& machine,
                            bool emulated) {
  CalibrationResult result;
  result.machine = machine.name();
  result.links = to_string(machine.link_model());
  result.emulated = emulated;
  result.devices = machine.device_count();
  result.transfers = calibration.transfers();
  const Jitter jitter = calibration.jitter();
  result.jitter = jitter.sigma;
  result.transfer_jitter = jitter.transfers;
  result.tail_probability = jitter.tail.probability;
  result.tail_factor = jitter.tail.factor;
  result.fit = calibration.fit();
  result.stretch = calibration.stretch();
  result.others = calibration.others();
  result.noise = noise_of_calibration(result);
  result.op_excess = emulated ? machine.device(0).overhead - base.device(0).overhead : 0;
  if (machine.device_count() > 1) {
    const Link& link = machine.link(0, 1);
    result.latency = link.latency;
    result.bytes_per_second = link.bytes_per_second;
    if (emulated) result.link_excess = link.latency - base.link(0, 1).latency;
  }
  if (!emulated) result.kinds = calibration.kinds();
  return result;
}

void run_calibrate(const CalibrateOptions& options) {
  const bool emulated = options.executor.emulated();
  if (emulated && options.machine.empty())
    throw InputError("calibrate: no machine; required --machine, the one to emulate");
  if (options.placements == 0 || options.repeat == 0)
    throw InputError("--placements, --repeat: found 0; required at least 1");
  if (options.count > 0 && !options.machine.empty())
    throw InputError("calibrate: found --count and --machine; required one of them");
  if (options.output == "-" && options.json_to_stdout())
    throw InputError("-o and --json: both are standard output; required at most one");
  std::vector<std::string> inputs = options.graphs;
  inputs.push_back(options.machine);
  check_outputs(inputs, {{"-o", options.output}, {"--json", options.json}, {"--html", options.html}});
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
  keep_when_interrupted();
  observe(workloads, options, calibration);
  // Another name than the preset's: a placement says for which machine it was made.
  const Machine machine = calibration.machine(
      options.machine.empty() ? base.name() : base.name() + (emulated ? ", emulated" : ", calibrated"));
  CalibrationResult result = result_of(calibration, base, machine, emulated);
  if (!emulated && !cuda) result.products = product_shares(options.quiet);
  if (!result.noise.empty())  // even if it is to be quiet: the machine file would be believed
    complain(fmt::format("warning: this machine predicts little: {}; is something else running here?", result.noise));
  write_result_if_asked(options, result);
  write_file_atomically(options.output, machine_to_json(machine));
  if (options.output != "-" && !options.quiet) print_text(options, to_text(result));
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
  verb->add_option("--time", options->limit,
                   "How long at most; then what was measured counts, one run of each at least")
      ->capture_default_str();
  verb->add_option("-o,--output", options->output, "Where the machine file goes; - is standard output")
      ->type_name("FILE")
      ->capture_default_str();
  add_rule_flags(*verb, *options);
  add_graph_flags(*verb, *options);
  add_output_flags(*verb, *options);
  verb->footer("Example:\n  doppler calibrate g.json -o box.json && doppler place g.json --machine box.json -o p.json");
  verb->callback([options] { run_calibrate(*options); });
}

}  // namespace doppler
