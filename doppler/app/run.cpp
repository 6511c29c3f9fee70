#include "doppler/run.h"

#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/app/flags/executor.h"
#include "doppler/app/placements.h"
#include "doppler/app/serve.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/place.h"
#include "doppler/program/onnx/runnable_model.h"
#include "doppler/program/text/program_json.h"
#include "doppler/report/trace.h"

namespace doppler {
namespace {

struct RunFlags : Options {
  std::string graph, placement, trace, output;
  ExecutorFlags executor;
  ServeOptions serve;
  unsigned repeat = 20, warmup = 3;
  bool no_one_device = false;
};

// A result is written to the file of its name, so that the name must be one of a file.
void check_result_names(const Problem& problem) {
  constexpr std::size_t kLongest = 255 - 4;  // with ".npy", on any file system
  const auto check = [&](const std::string& name) {
    if (name.empty() || name.size() > kLongest || name.find('/') != name.npos || name.find('\0') != name.npos)
      throw InputError(
          fmt::format("--output: found a result named '{}'; required the name of a file: no '/', no NUL, 1 to {} bytes",
                      name, kLongest));
  };
  if (problem.model() != nullptr) {
    for (const std::string& name : problem.model()->output_names) check(name);
    return;
  }
  const program::Program& program = *problem.program()->program;
  for (const program::ExprId id : program.outputs()) check(program.node(id).name);
  for (const program::Program::Update& update : program.updates()) check(program.node(update.next).name);
}

// Runs the program once more and writes a file per output and per value that an update computes.
void write_results(Executor& executor, const Placement& placement, const std::string& directory) {
  executor.results(placement, [&](const std::string& name, const std::string& npy) {
    write_file_atomically(fmt::format("{}/{}.npy", directory, name), npy);
  });
}

void make_directory(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed) throw InputError(fmt::format("--output: '{}': {}; required a directory", path, failed.message()));
}

// The inputs and outputs of both ways to run.
void check_files(const RunFlags& options) {
  const ServeOptions& serving = options.serve;
  check_outputs({options.graph, options.placement, options.machine, serving.checkpoint}, {{"--trace", options.trace},
                                                                                          {"--json", options.json},
                                                                                          {"--log", serving.log},
                                                                                          {"--plot", serving.plot},
                                                                                          {"--state", serving.state},
                                                                                          {"-o", serving.placement}});
}

// A placement for whoever has none, searched for about as long as a person waits without asking why.
Placement make_placement(const LoadedProblem& loaded, const RunFlags& options) {
  constexpr Seconds kTime = 2;
  PlaceOptions placing{.method = "auto", .time = kTime, .seed = options.seed, .graph = loaded.file.path};
  placing.stop = interruption();
  return place(loaded.problem, placing).placement;
}

void run_verb(RunFlags options) {
  if (options.repeat == 0) throw InputError("--repeat: found 0; required at least 1");
  if (!options.output.empty() && options.executor.emulated())
    throw InputError("--output: required --devices cpu or cuda, emulated devices compute nothing");
  check_files(options);
  std::optional<PlacementFile> file;
  if (!options.placement.empty()) file = read_placement(options.placement);
  if (!file && options.machine.empty())
    throw InputError(
        "run: found neither a placement nor a machine; required a placement file, or --machine to make one");
  if (options.machine.empty()) options.machine = machine_of(options.placement, *file);
  const LoadedProblem loaded = load(options.graph, options, Purpose::execution);
  const Placement placement =
      file ? placement_for(options.placement, std::move(*file), loaded.problem, options.quiet, "running")
           : make_placement(loaded, options);
  if (options.serve.learn) return serve(loaded, options.executor, placement, options.serve, options);
  const std::shared_ptr<Executor> executor = make_executor(loaded, options.executor, options);
  if (!options.output.empty()) {
    check_result_names(loaded.problem);
    make_directory(options.output);
  }
  keep_when_interrupted();
  ProgressLine progress(options.quiet, loaded.file.path, loaded.problem.graph().unitless());
  MeasureOptions measuring{.repeat = options.repeat, .warmup = options.warmup, .one_device = !options.no_one_device};
  measuring.on_run = [&](unsigned run, Seconds time) {
    progress.show_text("run",
                       fmt::format("{} of {}, {}", run + 1, options.warmup + options.repeat, show_time(loaded, time)));
  };
  Timeline last;
  RunResult result = run(*executor, placement, measuring, &last);
  result.graph = loaded.file.path;
  result.devices = options.executor.devices;
  if (!options.output.empty() && !result.interrupted) try {
      write_results(*executor, placement, options.output);
    } catch (const RunCancelled&) {
      // What was measured is kept; the program's results are not there.
    }
  if (!options.trace.empty())
    write_file_atomically(options.trace, timeline_to_trace(last, loaded.problem.graph(), loaded.problem.machine()));
  present(options, result);
}

}  // namespace

void add_run(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("run", "Execute a placement for real and time it");
  auto options = std::make_shared<RunFlags>();
  verb->add_option("graph", options->graph,
                   "An ONNX model, a graph with its program (doppler generate, lower) or, emulated, any graph")
      ->required();
  verb->add_option("placement", options->placement,
                   "A placement file, as 'doppler place -o' writes; without one, 'auto' makes a placement first");
  add_machine_flag(*verb, *options, false);
  add_executor_flags(*verb, options->executor);
  verb->add_option("--repeat", options->repeat, "Runs that count")->check(whole_number())->capture_default_str();
  verb->add_option("--warmup", options->warmup, "Runs before them")->check(whole_number())->capture_default_str();
  verb->add_flag("--no-one-device", options->no_one_device, "Do not time one device for comparison");
  verb->add_option("--trace", options->trace, "The last run for ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE");
  verb->add_option("--output", options->output, "A directory for the results of the program or model, as .npy")
      ->type_name("DIR");
  add_serve_flags(*verb, options->serve);
  add_rule_flags(*verb, *options);
  add_graph_flags(*verb, *options);
  add_output_flags(*verb, *options);
  verb->footer(
      "Example:\n  doppler generate chainmm --size 2048 --parts 8 -o g.json\n  doppler calibrate g.json -o box.json\n"
      "  doppler place g.json --machine box.json -o p.json\n  doppler run g.json p.json --machine box.json\n"
      "  doppler run model.onnx --machine box.json --input x=x.npy --output results");
  verb->callback([options] { run_verb(*options); });
}

}  // namespace doppler
