#include <nlohmann/json.hpp>

#include "doppler/app/console.h"
#include "doppler/app/study.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/graph/formats/dot.h"
#include "doppler/report/trace.h"
#include "doppler/sim/simulator.h"

namespace doppler {
namespace {

struct SimulateOptions : Options {
  std::string graph, placement, trace, dot;
};

// A user's placement may contradict the machine or the graph; a method's may not, which is verify()'s
// business.
void check_allowed(const std::string& where, const Problem& problem, const Placement& placement) {
  const Graph& graph = problem.graph();
  for (OpId op = 0; op < problem.op_count(); ++op) {
    const DeviceId device = placement.device_of_op[op];
    if (!problem.allows(op, device))
      throw InputError(fmt::format(
          "{}: op '{}' is on device '{}', which cannot run it or its colocation group; required device '{}'",
          where, graph.name(op), problem.machine().device(device).name,
          problem.machine().device(problem.devices(op).front()).name));
    const OpId first = problem.unit(op).front();
    if (device != placement.device_of_op[first])
      throw InputError(fmt::format(
          "{}: ops '{}' and '{}' are on different devices; required the same, they share a colocation group",
          where, graph.name(first), graph.name(op)));
  }
}

// A placement is only worth its makespan under the rules that it was made for.
void note_other_rules(const std::string& where, const std::string& text, const Rules& rules) {
  const auto file = nlohmann::json::parse(text);
  for (const auto& [key, now] :
       {std::pair("discipline", to_string(rules.discipline)), {"links", to_string(rules.links)}})
    if (const auto made = file.value(key, nlohmann::json()); made.is_string() && made != now)
      complain(fmt::format("note: {} was made for --{} {}; simulating {}", where, key,
                           made.get<std::string>(), now));
}

void run_simulate(const SimulateOptions& options) {
  const Study study(options.graph, options);
  const std::string text = read_file(options.placement);
  const Placement placement =
      parse_placement(options.placement, text, study.problem().op_count(), study.problem().device_count());
  check_allowed(options.placement, study.problem(), placement);
  if (!options.quiet) note_other_rules(options.placement, text, study.problem().rules());

  const Timeline timeline = Simulator(study.problem()).simulate(placement);
  Outcome outcome = outcome_of(study, options, lower_bound(study.problem()));
  outcome.made.makespan = timeline.makespan;
  outcome.gap = outcome.made.lower_bound > 0 ? timeline.makespan / outcome.made.lower_bound - 1 : 0;
  outcome.feasible = timeline.feasible();
  outcome.optimal = timeline.feasible() && study.problem().rules().noise == 0 &&
                    timeline.makespan <= outcome.made.lower_bound;

  if (!options.trace.empty())
    write_file_atomically(options.trace, timeline_to_trace(timeline, study.graph(), study.machine()));
  if (!options.dot.empty())
    write_file_atomically(options.dot, graph_to_dot(study.graph(), placement.device_of_op));
  write_json_if_asked(options, simulation_to_json(outcome, timeline, study.graph(), study.machine()));
  print_text(options, describe_run(study, outcome, timeline));
  if (timeline.overflow) throw InfeasibleError(describe_overflow(study, *timeline.overflow));
}

}  // namespace

void add_simulate(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("simulate", "Run a placement in the simulator");
  auto options = std::make_shared<SimulateOptions>();
  verb->add_option("graph", options->graph, "A graph in any format of docs/formats.md; - is standard input")
      ->required();
  verb->add_option("placement", options->placement, "A placement file, as 'doppler place -o' writes")
      ->required();
  add_machine_flag(*verb, *options, true);
  verb->add_option("--trace", options->trace, "The timeline for ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE");
  verb->add_option("--dot", options->dot, "The graph for Graphviz, coloured by device")->type_name("FILE");
  add_rule_flags(*verb, *options);
  add_graph_flags(*verb, *options);
  add_output_flags(*verb, *options);
  verb->footer(
      "Example:\n  doppler simulate examples/blocks.json placement.json --machine p100x4 --trace trace.json");
  verb->callback([options] { run_simulate(*options); });
}

}  // namespace doppler
