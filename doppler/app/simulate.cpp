#include "doppler/simulate.h"

#include <CLI/CLI.hpp>

#include "doppler/api/judge.h"
#include "doppler/app/loading.h"
#include "doppler/app/placements.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/graph/formats/dot.h"
#include "doppler/report/trace.h"
#include "doppler/why.h"

namespace doppler {
namespace {

struct SimulateOptions : Options {
  std::string graph, placement, trace, dot;
};

void run_simulate(const SimulateOptions& options) {
  check_outputs(
      {options.graph, options.placement, options.machine},
      {{"--trace", options.trace}, {"--dot", options.dot}, {"--json", options.json}, {"--html", options.html}});
  const LoadedProblem loaded = load(options.graph, options);
  if (!options.objective.empty()) make_objective(options.objective, loaded.problem);  // It may contradict the machine.
  const Placement placement = read_placement_for(options.placement, loaded, options.quiet, "simulating");

  const Timeline timeline = ExactObjective(loaded.problem).simulate(placement);
  if (!options.trace.empty()) write_file_atomically(options.trace, timeline_to_trace(timeline, loaded.problem));
  if (!options.dot.empty())
    write_file_atomically(options.dot, graph_to_dot(loaded.problem.graph(), placement.device_of_op));
  SimulationResult result = simulate(loaded.problem, placement, timeline);
  result.outcome.made.graph = loaded.file.path;
  result.outcome.objective = options.objective;
  if (options.wants_schedule()) result.schedule = schedule_of(loaded.problem, placement, timeline);
  present(options, result);
  if (timeline.overflow) throw InfeasibleError(describe(loaded.file.path, loaded.problem, *timeline.overflow));
}

}  // namespace

void add_simulate(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("simulate", "Run a placement in the simulator");
  auto options = std::make_shared<SimulateOptions>();
  verb->add_option("graph", options->graph, "A graph in any format of docs/formats.md; - is standard input")
      ->required();
  verb->add_option("placement", options->placement,
                   "A placement file, as 'doppler place -o' writes, or a device map (docs/maps.md)")
      ->required();
  add_machine_flag(*verb, *options, true);
  verb->add_option("--trace", options->trace, "The timeline for ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE");
  verb->add_option("--dot", options->dot, "The graph for Graphviz, coloured by device")->type_name("FILE");
  add_objective_flag(*verb, *options);
  add_rule_flags(*verb, *options);
  add_graph_flags(*verb, *options);
  add_output_flags(*verb, *options);
  add_timeline_flag(*verb, *options);
  verb->footer("Example:\n  doppler simulate examples/blocks.json placement.json --machine p100x4 --trace trace.json");
  verb->callback([options] { run_simulate(*options); });
}

}  // namespace doppler
