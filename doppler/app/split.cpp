#include "doppler/split.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/app/loading.h"
#include "doppler/app/placements.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"

namespace doppler {
namespace {

struct SplitFlags : Options {
  std::string graph, placement, output;
};

void run_split(SplitFlags flags) {
  check_outputs({flags.graph, flags.placement, flags.machine}, {{"--json", flags.json}});
  check_split_directory(flags.output);  // A model is long to read.
  if (flags.machine.empty()) flags.machine = machine_of(flags.placement, read_placement(flags.placement));
  const LoadedProblem loaded = load(flags.graph, flags);
  const Placement placement = read_placement_for(flags.placement, loaded, flags.quiet, "splitting for");
  const SplitResult result = split(loaded, placement, flags.output, load_options(flags).dims);
  if (!flags.quiet && !result.unchecked.empty())
    complain(fmt::format("note: ONNX's checker refuses '{}' as a whole, so not all parts were checked: {}", flags.graph,
                         result.unchecked));
  present(flags, result);
}

}  // namespace

void add_split(CLI::App& command) {
  CLI::App* verb =
      command.add_subcommand("split", "Cut an ONNX model in one model per device and stage of a placement");
  auto options = std::make_shared<SplitFlags>();
  verb->add_option("model", options->graph, "An ONNX model")->required();
  verb->add_option("placement", options->placement,
                   "A placement file, as 'doppler place -o' writes, or a device map (docs/maps.md)")
      ->required();
  verb->add_option("-o,--output", options->output,
                   "A directory, new, empty or of an earlier split: the parts and manifest.json")
      ->type_name("DIR")
      ->required();
  add_machine_flag(*verb, *options, false);
  add_dim_flag(*verb, options->dims);
  verb->add_flag("--no-rewrite", options->no_rewrite, "The placement was made with --no-rewrite");
  add_result_flags(*verb, *options);
  verb->footer(
      "Example:\n  doppler place model.onnx --machine h100:2 -o placement.json\n"
      "  doppler split model.onnx placement.json --machine h100:2 -o parts");
  verb->callback([options] { run_split(*options); });
}

}  // namespace doppler
