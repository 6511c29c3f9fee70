#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/app/loading.h"
#include "doppler/app/models.h"
#include "doppler/app/policies.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/report/json.h"
#include "doppler/sim/objective.h"

namespace doppler {
namespace {

struct PlaceOptions : Options {
  PolicyOptions policy;
  std::string graph;
  std::string method = "auto";
  std::string output;
  std::string export_format;  // empty: the placement file
};

// The makespan of everything on the best device that can run and hold it all; none may.
std::optional<Seconds> best_single_device(const Problem& problem) {
  std::optional<Seconds> best;
  ExactObjective objective(problem);
  std::vector<bool> class_done(problem.costs().device_classes(), false);
  for (DeviceId device = 0; device < problem.device_count(); ++device) {
    if (class_done[problem.costs().device_class(device)]) continue;
    bool allowed = true;
    for (OpId op = 0; op < problem.op_count() && allowed; ++op) allowed = problem.allows(op, device);
    if (!allowed) continue;
    class_done[problem.costs().device_class(device)] = true;
    Placement placement;
    placement.device_of_op.assign(problem.op_count(), device);
    const Timeline timeline = objective.simulate(placement);
    if (timeline.feasible() && (!best || timeline.makespan < *best)) best = timeline.makespan;
  }
  return best;
}

Result search(const LoadedProblem& loaded, const PlaceOptions& options, const Method& method,
              const LearnedPolicy& policy, const LowerBound& bound) {
  ProgressLine progress(options.quiet, loaded.file.path, loaded.problem.graph().unitless());
  progress.start(method.name);
  MethodOptions method_options = method_options_from(options);
  method_options.policy = &policy;
  method_options.on_progress = [&](const Progress& state) { progress.show(state); };
  ExactObjective objective(loaded.problem);
  return place(objective, method, method_options, bound);
}

void run_place(const PlaceOptions& options) {
  if (options.output == "-" && options.json_to_stdout())
    throw InputError("-o and --json: both are standard output; required at most one");
  const Method& method = method_by_name(options.method);
  method_options_from(options);  // a bad --time is better found before a large graph is read
  if (!options.policy.train.empty() && method.family != Method::Family::learned)
    throw InputError(
        fmt::format("--train: found --method {}; required a learned one: {}", method.name, learned_methods()));
  const auto policy = load_policy(options.policy);
  const LoadedProblem loaded = load(options.graph, options);
  if (!options.export_format.empty()) {
    check_export(options.export_format, options, loaded.file);
    if (options.output.empty()) throw InputError("--export: found no -o; required the file to write");
  }
  const Result result = search(loaded, options, method, *policy, lower_bound(loaded.problem));
  if (result.timeline.overflow) throw InfeasibleError(describe_overflow(loaded, *result.timeline.overflow));

  const Graph& graph = loaded.problem.graph();
  PlaceResult placed;
  placed.run = simulation_result(outcome_of(loaded, options, result), loaded.problem, result.timeline);
  placed.ops = graph.op_count();
  placed.edges = graph.edge_count();
  placed.single_device = best_single_device(loaded.problem);
  placed.placement = result.placement;
  Provenance& made = placed.run.outcome.made;
  if (!options.policy.train.empty()) made.budget = options.policy.train + " of training";
  if (!options.output.empty())
    write_file_atomically(options.output, options.export_format.empty()
                                              ? placement_to_json(result.placement, made)
                                              : export_placement(options.export_format, loaded.file, result.placement,
                                                                 loaded.problem.machine()));
  if (options.output == "-")
    write_json_if_asked(options, to_json(placed));
  else
    present(options, placed);
  if (interrupt_flag()->load() && !options.quiet) complain("interrupted; this is the best so far");
}

std::string method_help() {
  std::string help = "How to place:";
  for (const Method& method : methods()) help += fmt::format("\n  {:<14} {}", method.name, method.summary);
  return help;
}

}  // namespace

void add_place(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("place", "Find a placement and say what it is worth");
  auto options = std::make_shared<PlaceOptions>();
  verb->add_option("graph", options->graph, "A graph in any format of docs/formats.md; - is standard input")
      ->required();
  add_machine_flag(*verb, *options, true);
  verb->add_option("--method", options->method, method_help())->type_name("METHOD")->capture_default_str();
  verb->add_option("-o,--output", options->output, "Where the placement goes; - is standard output")->type_name("FILE");
  verb->add_option("--export", options->export_format,
                   "What -o gets instead: onnx (the model with a device per node), device-map (modules to devices)")
      ->type_name("FORMAT");
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
