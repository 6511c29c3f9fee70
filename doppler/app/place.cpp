#include "doppler/place.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/app/flags/policies.h"
#include "doppler/app/loading.h"
#include "doppler/app/placements.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/report/export.h"
#include "doppler/results.h"
#include "doppler/why.h"

namespace doppler {
namespace {

// How much worse than the best a simpler placement may be, where nobody says.
constexpr double kUsualTolerance = 0.005;

struct PlaceFlags : Options {
  PolicyOptions policy;
  std::string graph;
  std::string method = "auto";
  std::string output;
  std::string export_format;  // empty: the placement file
  std::string tolerance;      // empty: kUsualTolerance for auto, none for a method that was asked for
  std::string start;          // a placement or a map to begin with; empty: none
};

PlaceOptions options_of(const PlaceFlags& flags) {
  PlaceOptions options = place_options(flags, flags.policy);
  options.method = flags.method;
  options.objective_name = flags.objective;
  if (!flags.tolerance.empty())
    options.tolerance = parse_share(flags.tolerance, "--tolerance");
  else if (flags.method == "auto")
    options.tolerance = kUsualTolerance;
  return options;
}

// What -o gets: the placement, or what --export makes of it.
std::string written(const PlacedFile& placed, const std::optional<ExportFormat>& format) {
  const PlaceResult& result = placed.result;
  if (!format) return placement_to_json(result.placement, result.run.outcome.made);
  return export_placement(*format, placed.loaded.file, result.placement, placed.loaded.problem.machine());
}

void run_place(PlaceFlags flags) {
  if (flags.output == "-" && flags.json_to_stdout())
    throw InputError("-o and --json: both are standard output; required at most one");
  check_outputs({flags.graph, flags.machine, flags.policy.checkpoint, flags.start},
                {{"-o", flags.output}, {"--json", flags.json}, {"--html", flags.html}});
  PlaceOptions options = options_of(flags);
  check(options);  // a bad flag is better found before a large graph is read
  std::optional<ExportFormat> format;
  if (!flags.export_format.empty()) {
    format = parse_export_format(flags.export_format);
    if (flags.output.empty()) throw InputError("--export: found no -o; required the file to write");
    if (flags.granularity.empty()) flags.granularity = to_string(granularity_for(*format));
  }
  std::optional<ProgressLine> progress;
  options.graph = flags.graph;
  options.on_progress = [&](const Progress& state) { progress->show(state); };
  options.on_loaded = [&](const LoadedProblem& loaded) {
    if (format) check_export(*format, loaded.file);
    if (!progress && !flags.quiet) warn(loaded.file);
    keep_when_interrupted();
    progress.emplace(flags.quiet, loaded.file.path, loaded.problem.graph().unitless());
  };
  options.start = [&](const LoadedProblem& loaded) -> std::optional<Placement> {
    if (!flags.start.empty()) return read_placement_for(flags.start, loaded, flags.quiet, "starting from it with");
    return flags.policy.alone ? std::nullopt : trained_placement(flags.policy.checkpoint, loaded);
  };
  PlacedFile placed = place_file(flags.graph, machine_from(flags), load_options(flags), options);
  progress.reset();

  if (flags.wants_schedule()) {
    const Problem& problem = placed.loaded.problem;
    const Placement& placement = placed.result.placement;
    placed.result.run.schedule = schedule_of(problem, placement, ExactObjective(problem).simulate(placement));
  }
  if (flags.output == "-") write_result_if_asked(flags, placed.result);  // Files first: standard output may fail.
  if (!flags.output.empty()) write_file_atomically(flags.output, written(placed, format));
  if (flags.output != "-") present(flags, placed.result);
  if (format == ExportFormat::ort && !flags.quiet)
    complain(fmt::format("note: {} wants session.layer_assignment_settings = \"{}\"", flags.output,
                         layer_assignment_settings(placed.result.placement, placed.loaded.problem.machine())));
}

std::string method_help() {
  std::string help = "How to place:";
  for (const Method& method : methods()) help += fmt::format("\n  {:<14} {}", method.name, method.summary);
  return help;
}

}  // namespace

void add_place(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("place", "Find a placement and say what it is worth");
  auto options = std::make_shared<PlaceFlags>();
  verb->add_option("graph", options->graph, "A graph in any format of docs/formats.md; - is standard input")
      ->required();
  add_machine_flag(*verb, *options, true);
  verb->add_option("--method", options->method, method_help())->type_name("METHOD")->capture_default_str();
  verb->add_option("-o,--output", options->output, "Where the placement goes; - is standard output")->type_name("FILE");
  verb->add_option("--export", options->export_format, "What -o gets instead: " + export_help())->type_name("FORMAT");
  verb->add_option("--tolerance", options->tolerance,
                   "How much worse a simpler placement may be: fewer devices, then fewer bytes moved")
      ->default_str("0.5% for auto, else none")
      ->type_name("SHARE");
  verb->add_option("--start", options->start,
                   "A placement or a device map to begin with; the answer is never worse (docs/maps.md)")
      ->type_name("FILE");
  add_granularity_flag(*verb, *options);
  add_objective_flag(*verb, *options);
  add_search_flags(*verb, *options);
  add_policy_flags(*verb, options->policy);
  add_answer_flags(*verb, options->policy);
  add_rule_flags(*verb, *options);
  add_graph_flags(*verb, *options);
  add_output_flags(*verb, *options);
  add_timeline_flag(*verb, *options);
  verb->footer("Example:\n  doppler place examples/blocks.json --machine p100x4 --time 5s -o placement.json");
  verb->callback([options] { run_place(*options); });
}

}  // namespace doppler
