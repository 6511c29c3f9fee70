#include <algorithm>
#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/app/flags/policies.h"
#include "doppler/app/loading.h"
#include "doppler/app/placements.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/results.h"
#include "doppler/simulate.h"

namespace doppler {
namespace {

struct CompareFlags : Options {
  PolicyOptions policy;
  std::vector<std::string> graphs;
  std::string methods;                  // comma-separated; empty: all
  std::vector<std::string> placements;  // files that get a row each
};

std::vector<std::string> split_names(const std::string& names) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; !names.empty() && begin <= names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    parts.push_back(names.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// What somebody else's placement is worth, as a row.
ComparisonRow row_of(const std::string& path, const LoadedProblem& loaded, const CompareFlags& options,
                     const std::string& objective) {
  const Placement placement = read_placement_for(path, loaded, options.quiet, "comparing");
  ComparisonRow row;
  const SimulationResult simulated = simulate(loaded.problem, placement);
  row.outcome = simulated.outcome;
  for (const DeviceUse& use : simulated.devices) row.utilisation.push_back(use.utilisation);
  row.outcome.made.method = row.outcome.made.winner = path;
  row.outcome.made.graph = loaded.file.path;
  row.outcome.objective = objective;
  if (!row.outcome.feasible) row.outcome.reason = "exceeds memory";
  row.ops = loaded.problem.op_count();
  return row;
}

void run_compare(const CompareFlags& options) {
  std::vector<std::string> inputs = options.graphs;
  inputs.insert(inputs.end(), options.placements.begin(), options.placements.end());
  if (!options.placements.empty() && options.graphs.size() != 1)
    throw InputError(
        fmt::format("--placement: found {} graphs; required the one that it is of", options.graphs.size()));
  inputs.insert(inputs.end(), {options.machine, options.policy.checkpoint});
  check_outputs(inputs, {{"--json", options.json}, {"--html", options.html}});
  const std::vector<std::string> names = split_names(options.methods);
  PlaceOptions placing = place_options(options, options.policy);
  check(names, placing);                // A bad flag is better found before the graphs are read.
  std::vector<LoadedProblem> problems;  // All of them first: a bad file must not cost finished work.
  const Machine machine = machine_from(options);
  for (const std::string& path : options.graphs) problems.push_back(load(path, machine, options));

  keep_when_interrupted();
  Comparison all;
  std::string nothing_feasible;
  std::exception_ptr unwritable;  // Standard output failed, which must not cost the file.
  for (const LoadedProblem& loaded : problems) {
    if (interrupted()) break;
    Comparison found;
    {
      ProgressLine progress(options.quiet, loaded.file.path, loaded.problem.graph().unitless());
      placing.graph = loaded.file.path;
      placing.objective_name = options.objective;
      placing.on_progress = [&](const Progress& state) { progress.show(state); };
      found = compare(loaded.problem, names, placing);
    }
    const std::string objective = found.rows.empty() ? options.objective : found.rows.front().outcome.objective;
    for (const std::string& path : options.placements) found.rows.push_back(row_of(path, loaded, options, objective));
    try {
      if (!found.rows.empty()) print_text(options, (all.rows.empty() ? "" : "\n") + to_text(found));
    } catch (const InputError&) {
      unwritable = std::current_exception();
    }
    if (std::none_of(found.rows.begin(), found.rows.end(),
                     [](const ComparisonRow& row) { return row.outcome.feasible; }))
      nothing_feasible += fmt::format("{}{}", nothing_feasible.empty() ? "" : ", ", loaded.file.path);
    std::move(found.rows.begin(), found.rows.end(), std::back_inserter(all.rows));
  }
  if (all.rows.empty() && interrupted()) throw RunCancelled(kNothingToKeep);
  write_result_if_asked(options, all);
  if (unwritable) std::rethrow_exception(unwritable);
  if (!nothing_feasible.empty() && !interrupted())
    throw InfeasibleError(fmt::format("{}: no method found a feasible placement", nothing_feasible));
}

}  // namespace

void add_compare(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("compare", "Run several methods and compare what they find");
  auto options = std::make_shared<CompareFlags>();
  verb->add_option("graphs", options->graphs, "Graphs in any format of docs/formats.md")->required();
  add_machine_flag(*verb, *options, true);
  verb->add_option("--methods", options->methods,
                   "Comma-separated; default: all of 'doppler place --help' that need no training first")
      ->type_name("METHOD,…");
  verb->add_option("--placement", options->placements,
                   "A placement file or a device map (docs/maps.md) that gets a row, too; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  add_granularity_flag(*verb, *options);
  add_objective_flag(*verb, *options);
  add_search_flags(*verb, *options);
  add_policy_flags(*verb, options->policy);
  add_answer_flags(*verb, options->policy);
  add_rule_flags(*verb, *options);
  add_graph_flags(*verb, *options);
  add_output_flags(*verb, *options);
  verb->footer(
      "Example:\n  doppler compare examples/blocks.json --machine p100x4 --methods heft,metis,auto --time "
      "5s");
  verb->callback([options] { run_compare(*options); });
}

}  // namespace doppler
