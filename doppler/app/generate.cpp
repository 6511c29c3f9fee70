#include "doppler/graph/generate.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/flags/options.h"
#include "doppler/app/programs.h"
#include "doppler/app/verbs.h"
#include "doppler/base/file.h"
#include "doppler/graph/formats/native_json.h"

namespace doppler {
namespace {

// Adds one family of graphs: the flags that all share here, its own in `add_flags`.
template <typename FamilyOptions, typename AddFlags>
void add_family(CLI::App& generate, const char* name, const char* summary, Graph (*make)(const FamilyOptions&),
                AddFlags add_flags) {
  struct All {
    FamilyOptions family;
    std::string output = "-";
  };
  auto all = std::make_shared<All>();
  CLI::App* verb = generate.add_subcommand(name, summary);
  FamilyOptions& family = all->family;
  verb->add_option("--ops", family.ops, "Number of ops, exactly")->check(whole_number())->capture_default_str();
  add_flags(*verb, family);
  verb->add_option("--mean-flops", family.costs.mean_flops, "Mean flops of an op")->capture_default_str();
  verb->add_option("--spread", family.costs.spread, "Sigma of the lognormal flops and bytes; 0: all equal")
      ->capture_default_str();
  verb->add_option("--communication-ratio", family.costs.communication_ratio,
                   "Time to move every edge over time to compute every op, about a P100 on PCIe 3")
      ->capture_default_str();
  verb->add_option("--seed", family.seed, "Fixes every random choice")->check(whole_number())->capture_default_str();
  verb->add_option("-o,--output", all->output, "Where the graph goes; - is standard output")
      ->type_name("FILE")
      ->capture_default_str();
  verb->footer(fmt::format("Example:\n  doppler generate {} --ops 1000 --seed 1 -o graph.json", name));
  verb->callback([all, make] { write_file_atomically(all->output, graph_to_json(make(all->family))); });
}

}  // namespace

void add_generate(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("generate", "Make a graph or a model of any size");
  verb->require_subcommand(1);
  verb->footer("Example:\n  doppler generate chain-of-blocks --ops 240 --width 6 -o graph.json");
  add_family(
      *verb, "layered", "Ops in layers, each reading from the layer before", generate_layered,
      [](CLI::App& family, LayeredOptions& options) {
        family.add_option("--width", options.width, "Mean ops per layer")->check(whole_number())->capture_default_str();
        family.add_option("--degree", options.degree, "Mean inputs per op")->capture_default_str();
      });
  add_family(*verb, "random", "Every pair of ops is an edge with the same probability", generate_random,
             [](CLI::App& family, RandomOptions& options) {
               family.add_option("--degree", options.degree, "Mean edges per op")->capture_default_str();
             });
  add_family(
      *verb, "series-parallel", "Edges split in series or in parallel, again and again", generate_series_parallel,
      [](CLI::App& family, SeriesParallelOptions& options) {
        family.add_option("--parallel", options.parallel, "Probability of a parallel split")->capture_default_str();
      });
  add_family(
      *verb, "chain-of-blocks", "Like a transformer: blocks of parallel branches, one after the other",
      generate_chain_of_blocks, [](CLI::App& family, ChainOfBlocksOptions& options) {
        family.add_option("--width", options.width, "Branches per block")->check(whole_number())->capture_default_str();
        family.add_option("--depth", options.depth, "Ops per branch")->check(whole_number())->capture_default_str();
      });
  add_program_families(*verb);
  add_model_families(*verb);
}

}  // namespace doppler
