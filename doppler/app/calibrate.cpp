#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/app/rig.h"
#include "doppler/app/varied_placements.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/pin_thread.h"
#include "doppler/base/statistics.h"
#include "doppler/calibrate/calibration.h"
#include "doppler/program/cut/decompose.h"
#include "doppler/program/expr/workloads.h"
#include "doppler/report/table.h"

namespace doppler {
namespace {

struct CalibrateOptions : Options {
  std::vector<std::string> graphs;
  std::string output = "-";
  RigOptions rig;
  DeviceId count = 0;
  unsigned placements = 12, repeat = 10;
};

// Programs of every kind of kernel in sizes of everyday blocks, for a machine that is to predict others.
std::vector<GraphFile> standard_graphs(DeviceId devices) {
  std::vector<GraphFile> graphs;
  const auto add = [&](const char* title, auto build) {
    auto made = std::make_shared<program::Program>();
    build(*made);
    program::DecomposeOptions cut;
    cut.parts = 4 * devices;
    program::Plan plan = program::decompose(*made, cut)[0].plan;
    graphs.push_back(lower_to_file(title, std::move(made), std::move(plan), {.title = title}));
  };
  for (const program::Index size : {512, 1024})
    add("chainmm", [&](program::Program& made) { program::chain_of_products(made, {.size = size}); });
  add("ffnn", [](program::Program& made) {
    program::feed_forward(made, {.batch = 1024, .input = 256, .hidden = 2048, .output = 256, .layers = 3});
  });
  add("llama-block", [](program::Program& made) {
    program::llama(made, {.width = 512,
                          .heads = 8,
                          .hidden = 1376,
                          .sequence = 256,
                          .part = program::LlamaOptions::Part::block,
                          .dtype = program::DType::f32});
  });
  return graphs;
}

// One graph, ready to run.
struct Workload {
  Workload(const GraphFile& file, const Machine& machine, const CalibrateOptions& options)
      : loaded{file, make_problem(file, machine, load_options(options))},
        rig(loaded, options.rig, options.seed),
        turns(calibration_turns(loaded.problem, options.placements, options.seed)) {}

  LoadedProblem loaded;
  Rig rig;
  std::vector<Turn> turns;
};

// In rounds over all graphs and placements. Ctrl-C keeps what was measured.
void observe(std::vector<std::unique_ptr<Workload>>& workloads, const CalibrateOptions& options,
             Calibration& calibration) {
  ProgressLine progress(options.quiet, "calibrate", false);
  Rng rng(options.seed);
  try {
    for (unsigned round = 0; round <= options.repeat; ++round)
      for (const std::unique_ptr<Workload>& workload : workloads) {
        run_round(workload->rig.engine(), workload->turns, rng, [&](const Turn& turn, Seconds) {
          if (round > 0)  // the first is for buffers and caches
            calibration.add(workload->loaded.problem, turn.placement, workload->rig.engine().timeline());
        });
        progress.show_text("calibrate",
                           fmt::format("round {} of {}, {}", round, options.repeat, workload->loaded.file.path));
      }
  } catch (const RunCancelled&) {
    if (calibration.empty()) throw InputError("calibrate: interrupted before anything was measured");
  }
  if (calibration.empty())
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
  const bool emulated = options.rig.devices == "emulated";
  if (emulated && options.machine.empty())
    throw InputError("calibrate: no machine; required --machine, the one to emulate");
  if (options.placements == 0 || options.repeat == 0)
    throw InputError("--placements, --repeat: found 0; required at least 1");
  if (options.count > 0 && !options.machine.empty())
    throw InputError("calibrate: found --count and --machine; required one of them");
  const bool cuda = options.rig.devices == "cuda";
  if (cuda && options.count == 0 && options.machine.empty())
    throw InputError("calibrate: no number of GPUs; required --count or --machine");
  const DeviceId count = options.count > 0 ? options.count : usable_cores();
  const Machine base = options.machine.empty() ? bare_machine(cuda ? "gpu" : "cpu", count) : machine_from(options);
  Calibration calibration(base, emulated);
  std::vector<std::unique_ptr<Workload>> workloads;
  if (options.graphs.empty())
    for (const GraphFile& file : standard_graphs(base.device_count()))
      workloads.push_back(std::make_unique<Workload>(file, base, options));
  for (const std::string& path : options.graphs)
    workloads.push_back(
        std::make_unique<Workload>(load_graph(path, &base, options, Purpose::execution), base, options));
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
  add_rig_flags(*verb, options->rig);
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
