#include "doppler/place.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/app/flags/policies.h"
#include "doppler/app/loading.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/report/export.h"
#include "doppler/results.h"

namespace doppler {
namespace {

struct PlaceFlags : Options {
  PolicyOptions policy;
  std::string graph;
  std::string method = "auto";
  std::string output;
  std::string export_format;  // empty: the placement file
};

void run_place(const PlaceFlags& options) {
  if (options.output == "-" && options.json_to_stdout())
    throw InputError("-o and --json: both are standard output; required at most one");
  check_outputs({options.graph, options.machine, options.policy.checkpoint},
                {{"-o", options.output}, {"--json", options.json}});
  PlaceOptions placing = place_options(options, options.policy);
  placing.method = options.method;
  check(placing);  // a bad flag is better found before a large graph is read
  std::optional<ExportFormat> format;
  if (!options.export_format.empty()) {
    format = parse_export_format(options.export_format);
    if (options.output.empty()) throw InputError("--export: found no -o; required the file to write");
  }
  const LoadedProblem loaded = load(options.graph, options);
  if (format) check_export(*format, loaded.file);

  keep_when_interrupted();
  ProgressLine progress(options.quiet, loaded.file.path, loaded.problem.graph().unitless());
  placing.graph = loaded.file.path;
  if (!options.objective.empty()) placing.objective = make_objective(options.objective, loaded.problem);
  placing.on_progress = [&](const Progress& state) { progress.show(state); };
  const PlaceResult result = place(loaded.problem, placing);

  if (options.output == "-") write_json_if_asked(options, to_json(result));  // Files first: standard output may fail.
  if (!options.output.empty())
    write_file_atomically(options.output,
                          format ? export_placement(*format, loaded.file, result.placement, loaded.problem.machine())
                                 : placement_to_json(result.placement, result.run.outcome.made));
  if (options.output != "-") present(options, result);
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
  verb->add_option("--export", options->export_format,
                   "What -o gets instead: onnx (the model with a device per node), device-map (modules to devices)")
      ->type_name("FORMAT");
  add_objective_flag(*verb, *options);
  add_search_flags(*verb, *options);
  add_policy_flags(*verb, options->policy);
  add_answer_flags(*verb, options->policy);
  add_rule_flags(*verb, *options);
  add_graph_flags(*verb, *options);
  add_output_flags(*verb, *options);
  verb->footer("Example:\n  doppler place examples/blocks.json --machine p100x4 --time 5s -o placement.json");
  verb->callback([options] { run_place(*options); });
}

}  // namespace doppler
