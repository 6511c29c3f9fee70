#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/app/policies.h"
#include "doppler/app/study.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/report/summary.h"
#include "doppler/sim/simulator.h"

namespace doppler {
namespace {

struct PlaceOptions : Options {
  PolicyOptions policy;
  std::string graph;
  std::string method = "auto";
  std::string output;
  std::string export_format;  // empty: the placement file
};

// The makespan of everything on the best device that can run and hold it all; 0: there is none.
Seconds best_single_device(const Problem& problem) {
  Seconds best = 0;
  Simulator simulator(problem);
  std::vector<bool> class_done(problem.costs().device_classes(), false);
  for (DeviceId device = 0; device < problem.device_count(); ++device) {
    if (class_done[problem.costs().device_class(device)]) continue;
    bool allowed = true;
    for (OpId op = 0; op < problem.op_count() && allowed; ++op) allowed = problem.allows(op, device);
    if (!allowed) continue;
    class_done[problem.costs().device_class(device)] = true;
    Placement placement;
    placement.device_of_op.assign(problem.op_count(), device);
    const Timeline timeline = simulator.simulate(placement);
    if (timeline.feasible() && (best == 0 || timeline.makespan < best)) best = timeline.makespan;
  }
  return best;
}

Result search(const Study& study, const PlaceOptions& options, const Method& method, const LearnedPolicy& policy,
              const LowerBound& bound) {
  ProgressLine progress(options.quiet, study.path(), study.graph().unitless());
  progress.start(method.name);
  MethodOptions method_options = method_options_from(options);
  method_options.policy = &policy;
  method_options.on_progress = [&](const Progress& state) { progress.show(state); };
  return place(study.problem(), method, method_options, bound);
}

std::string describe(const Study& study, const Outcome& outcome, const Timeline& timeline, Seconds single) {
  const Provenance& made = outcome.made;
  std::string text = fmt::format("graph        {}, {} ops, {} edges\n", study.path(), study.graph().op_count(),
                                 study.graph().edge_count());
  text += fmt::format("machine      {}, {} devices\n", made.machine, study.machine().device_count());
  text += fmt::format("method       {}{}, {:.2f} s, {} evaluations, seed {}\n", made.method,
                      made.winner == made.method ? "" : fmt::format(" (won by {})", made.winner), outcome.seconds,
                      made.evaluations, made.seed);
  if (single > 0 && made.makespan > 0)
    text += fmt::format("speed-up     {:.2f} over the best single device ({})\n", single / made.makespan,
                        study.show_time(single));
  return text + describe_run(study, outcome, timeline);
}

void run_place(const PlaceOptions& options) {
  if (options.output == "-" && options.json_to_stdout())
    throw InputError("-o and --json: both are standard output; required at most one");
  const Method& method = method_by_name(options.method);
  method_options_from(options);  // a bad --time is better found before a large graph is read
  if (!options.policy.train.empty() && method.name != "doppler")
    throw InputError(fmt::format("--train: found --method {}; required --method doppler", method.name));
  const auto policy = load_policy(options.policy);
  const Study study(options.graph, options);
  if (!options.export_format.empty()) {
    check_export(options.export_format, options, study.loaded());
    if (options.output.empty()) throw InputError("--export: found no -o; required the file to write");
  }
  const Result result = search(study, options, method, *policy, lower_bound(study.problem()));
  const Timeline timeline = Simulator(study.problem()).simulate(result.placement);
  if (timeline.overflow) throw InfeasibleError(describe_overflow(study, *timeline.overflow));

  Outcome outcome = outcome_of(study, options, result);
  outcome.expected = expected_on_machine(study, result.placement);
  if (!options.policy.train.empty()) outcome.made.budget = options.policy.train + " of training";
  const Seconds single = best_single_device(study.problem());
  if (!options.output.empty())
    write_file_atomically(options.output, options.export_format.empty()
                                              ? placement_to_json(result.placement, outcome.made)
                                              : export_placement(options.export_format, study.loaded(),
                                                                 result.placement, study.machine()));
  write_json_if_asked(
      options, place_result_to_json(outcome, timeline, study.graph(), study.machine(), result.placement, single));
  if (options.output != "-") print_text(options, describe(study, outcome, timeline, single));
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
