#include "doppler/run.h"

#include <filesystem>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/app/flags/executor.h"
#include "doppler/app/placements.h"
#include "doppler/app/serve.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/kernels/onnx/tensor_npy.h"
#include "doppler/place.h"
#include "doppler/program/onnx/runnable_model.h"
#include "doppler/program/onnx/tensor_file.h"
#include "doppler/program/text/program_json.h"
#include "doppler/report/trace.h"
#include "doppler/why.h"

namespace doppler {
namespace {

struct RunFlags : Options {
  std::string graph, placement, trace, output, output_format = "npy";
  ExecutorFlags executor;
  ServeOptions serve;
  unsigned repeat = 20, warmup = 3;
  std::string limit = "1m";
  bool no_one_device = false;
};

// A result is written to the file of its name; '/', which names of PyTorch's exporter have, is %2F there.
std::string file_of_result(const std::string& name, const std::string& format) {
  std::string file;
  for (const char letter : name) letter == '/' ? file += "%2F" : file += letter;
  return file + "." + format;
}
void check_result_names(const Problem& problem, const std::string& format) {
  constexpr std::size_t kLongest = 255;  // on any file system
  std::set<std::string> files;
  const auto check = [&](const std::string& name) {
    const std::string file = file_of_result(name, format);
    if (name.empty() || file.size() > kLongest || name.find('\0') != name.npos)
      throw InputError(fmt::format(
          "--output: found a result named '{}'; required the name of a file: no NUL, 1 to {} bytes with '/' "
          "as %2F and .{}",
          name, kLongest, format));
    if (!files.insert(file).second)
      throw InputError(fmt::format("--output: found two results for the file '{}'; required different names", file));
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
void write_results(Executor& executor, const Placement& placement, const RunFlags& options) {
  executor.results(placement, [&](const std::string& name, const std::string& npy) {
    const std::string path = options.output + "/" + file_of_result(name, options.output_format);
    write_file_atomically(
        path, options.output_format == "npy" ? npy : model::to_tensor_pb(model::parse_tensor_npy(path, npy), name));
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
                                                                                          {"--html", options.html},
                                                                                          {"--log", serving.log},
                                                                                          {"--plot", serving.plot},
                                                                                          {"--state", serving.state},
                                                                                          {"-o", serving.placement}});
}

struct Placed {
  LoadedProblem loaded;
  Placement placement;
};

// A placement for whoever has none, searched for about as long as a person waits without asking why.
Placed make_placement(const RunFlags& options) {
  constexpr Seconds kTime = 2;
  PlaceOptions placing{.method = "auto", .time = kTime, .seed = options.seed, .graph = options.graph};
  placing.stop = interruption();
  if (options.shard == "auto") {
    PlacedFile placed =
        place_file(options.graph, machine_from(options), load_options(options, Purpose::execution), placing);
    return {std::move(placed.loaded), std::move(placed.result.placement)};
  }
  LoadedProblem loaded = load(options.graph, options, Purpose::execution);
  Placement placement = place(loaded.problem, placing).placement;
  return {std::move(loaded), std::move(placement)};
}

Placed take_placement(const RunFlags& options, PlacementFile file) {
  LoadedProblem loaded = load(options.graph, options, Purpose::execution);
  Placement placement = placement_for(options.placement, std::move(file), loaded, options.quiet, "running");
  return {std::move(loaded), std::move(placement)};
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
  const Placed placed = file ? take_placement(options, std::move(*file)) : make_placement(options);
  const LoadedProblem& loaded = placed.loaded;
  const Placement& placement = placed.placement;
  if (options.serve.learn) return serve(loaded, options.executor, placement, options.serve, options);
  const std::shared_ptr<Executor> executor = make_executor(loaded, options.executor, options);
  if (!options.output.empty()) {
    check_result_names(loaded.problem, options.output_format);
    make_directory(options.output);
  }
  keep_when_interrupted();
  ProgressLine progress(options.quiet, loaded.file.path, loaded.problem.graph().unitless());
  MeasureOptions measuring{.repeat = options.repeat, .warmup = options.warmup, .one_device = !options.no_one_device};
  measuring.time = parse_duration(options.limit, "--time");
  measuring.on_run = [&](unsigned run, Seconds time) {
    progress.show_text("run",
                       fmt::format("{} of {}, {}", run + 1, options.warmup + options.repeat, show_time(loaded, time)));
  };
  Timeline last;
  RunResult result = run(*executor, placement, measuring, &last);
  result.graph = loaded.file.path;
  result.devices = options.executor.devices;
  if (!options.quiet && !result.noise.empty())
    complain(fmt::format("warning: these times mean little: {}; is something else running here?", result.noise));
  if (!options.quiet && !result.interrupted && result.times.size() < result.asked_for)
    complain(
        fmt::format("note: made {} of {} runs in --time {}", result.times.size(), result.asked_for, options.limit));
  if (!options.output.empty() && !result.interrupted) try {
      write_results(*executor, placement, options);
    } catch (const RunCancelled&) {
      // What was measured is kept; the program's results are not there.
    }
  if (!options.trace.empty()) write_file_atomically(options.trace, timeline_to_trace(last, loaded.problem));
  if (options.wants_schedule()) {
    result.schedule = schedule_of(loaded.problem, placement, last, true);
    result.simulated = schedule_of(loaded.problem, placement, ExactObjective(loaded.problem).simulate(placement));
  }
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
  verb->add_option("--time", options->limit, "How long at most, all in all; then what was measured counts")
      ->capture_default_str();
  verb->add_flag("--no-one-device", options->no_one_device, "Do not time one device for comparison");
  verb->add_option("--trace", options->trace, "The last run for ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE");
  verb->add_option("--output", options->output, "A directory for the results of the program or model, a file for each")
      ->type_name("DIR");
  verb->add_option("--output-format", options->output_format,
                   "What they are: NumPy's arrays, or tensors as ONNX has them")
      ->check(CLI::IsMember({"npy", "pb"}))
      ->capture_default_str();
  add_serve_flags(*verb, options->serve);
  add_rule_flags(*verb, *options);
  add_graph_flags(*verb, *options);
  add_output_flags(*verb, *options);
  add_timeline_flag(*verb, *options);
  verb->footer(
      "Example:\n  doppler generate chainmm --size 2048 --parts 8 -o g.json\n  doppler calibrate g.json -o box.json\n"
      "  doppler place g.json --machine box.json -o p.json\n  doppler run g.json p.json --machine box.json\n"
      "  doppler run model.onnx --machine box.json --input x=x.npy --output results");
  verb->callback([options] { run_verb(*options); });
}

}  // namespace doppler
