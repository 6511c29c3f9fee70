#include "doppler/why.h"

#include <CLI/CLI.hpp>

#include "doppler/app/loading.h"
#include "doppler/app/placements.h"
#include "doppler/app/verbs.h"
#include "doppler/base/file.h"

namespace doppler {
namespace {

struct WhyFlags : Options {
  std::string graph, placement, output;
  std::vector<std::string> names;
};

void run_why(const WhyFlags& flags) {
  check_outputs({flags.graph, flags.placement, flags.machine},
                {{"-o", flags.output}, {"--json", flags.json}, {"--html", flags.html}});
  const LoadedProblem loaded = load(flags.graph, flags);
  Placement placement = read_placement_for(flags.placement, loaded, flags.quiet, "explaining");
  const WhyResult answer = why(loaded.problem, placement, {.names = flags.names, .graph = loaded.file.path});
  if (!flags.output.empty()) {
    placement.cause_of_op = simulated_causes(loaded.problem, placement);
    Provenance made = provenance_of(loaded.problem, loaded.file.path);
    made.makespan = answer.makespan;
    made.fingerprint = fmt::format("{:016x}", loaded.problem.graph().fingerprint());
    write_file_atomically(flags.output, placement_to_json(placement, made));
  }
  present(flags, answer);
}

struct DiffFlags : Options {
  std::string graph, first, second;
};

void run_diff(const DiffFlags& flags) {
  check_outputs({flags.graph, flags.first, flags.second, flags.machine},
                {{"--json", flags.json}, {"--html", flags.html}});
  const LoadedProblem loaded = load(flags.graph, flags);
  const Placement first = read_placement_for(flags.first, loaded, flags.quiet, "comparing");
  const Placement second = read_placement_for(flags.second, loaded, flags.quiet, "comparing");
  DiffResult answer = diff(loaded.problem, first, second, loaded.file.path);
  answer.a.placement = flags.first;
  answer.b.placement = flags.second;
  present(flags, answer);
}

constexpr const char* kPlacementHelp = "A placement file, or a device map (docs/maps.md)";

}  // namespace

void add_why(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("why", "Say what limits a placement, and why ops are where they are");
  auto options = std::make_shared<WhyFlags>();
  verb->add_option("graph", options->graph, "A graph in any format of docs/formats.md; - is standard input")
      ->required();
  verb->add_option("placement", options->placement, kPlacementHelp)->required();
  verb->add_option("names", options->names, "Ops, modules, or patterns such as 'layers.3*', to ask about");
  add_machine_flag(*verb, *options, true);
  verb->add_option("-o,--output", options->output, "The placement with the cause of every op, found by simulation")
      ->type_name("FILE");
  add_rule_flags(*verb, *options);
  add_graph_flags(*verb, *options);
  add_output_flags(*verb, *options);
  verb->footer("Example:\n  doppler why examples/blocks.json placement.json 'b0*' --machine p100x4");
  verb->callback([options] { run_why(*options); });
}

void add_diff(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("diff", "Say what two placements do differently, and what that is worth");
  auto options = std::make_shared<DiffFlags>();
  verb->add_option("graph", options->graph, "A graph in any format of docs/formats.md; - is standard input")
      ->required();
  verb->add_option("first", options->first, kPlacementHelp)->required();
  verb->add_option("second", options->second, kPlacementHelp)->required();
  add_machine_flag(*verb, *options, true);
  add_rule_flags(*verb, *options);
  add_graph_flags(*verb, *options);
  add_output_flags(*verb, *options);
  verb->footer("Example:\n  doppler diff examples/blocks.json a.json b.json --machine p100x4");
  verb->callback([options] { run_diff(*options); });
}

}  // namespace doppler
