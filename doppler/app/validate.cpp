#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/api/policies.h"
#include "doppler/app/console.h"
#include "doppler/app/flags/executor.h"
#include "doppler/app/flags/policies.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/pin_thread.h"
#include "doppler/calibrate/calibration_runs.h"
#include "doppler/calibrate/validity.h"
#include "doppler/objective.h"
#include "doppler/report/plots.h"

namespace doppler {
namespace {

struct ValidateOptions : Options {
  std::vector<std::string> graphs;
  std::string plot;
  ExecutorFlags executor;
  PolicyOptions policy;
  std::size_t placements = 60;
  unsigned repeat = 30, warmup = 1;
  bool calibrate = false;
};

// Names where varied placements come from: the cheap methods and the learned policy.
PlacementSources sources_for(const Problem& problem, const LearnedPolicy& policy) {
  const auto objective = std::make_shared<ExactObjective>(problem);
  PlacementSources sources;
  for (const Method& method : methods()) {
    if (method.family != Method::Family::list && method.family != Method::Family::partition) continue;
    sources.methods.push_back({std::string(method.name), [&method, &problem, objective](std::uint64_t seed) {
                                 MethodOptions how;
                                 how.budget = how.budget.until(interruption());
                                 how.seed = seed;
                                 return method.run(problem, *objective, how).placement;
                               }});
  }
  sources.policy = [&policy, &problem, objective](std::uint64_t seed) {
    MethodOptions how;
    how.seed = seed;
    return policy.zero_shot(problem, *objective, how).placement;
  };
  return sources;
}

// Returns no samples if fewer than two placements ran. Ctrl-C keeps what was measured.
Validity validate(const std::string& path, const ValidateOptions& options, const LearnedPolicy& policy) {
  const Machine machine = options.machine.empty() ? bare_machine("cpu", usable_cores()) : machine_from(options);
  const LoadedProblem loaded = load(path, machine, options, Purpose::execution);
  const std::shared_ptr<Executor> executor = make_executor(loaded, options.executor, options);
  std::vector<VariedPlacement> placements =
      varied_placements(loaded.problem, sources_for(loaded.problem, policy), options.placements, options.seed);
  ProgressLine progress(options.quiet, loaded.file.path, loaded.problem.graph().unitless());
  ValidityOptions how{options.repeat, options.warmup, options.calibrate, options.seed};
  how.on_round = [&](unsigned round) {
    progress.show_text("validate", fmt::format("round {} of {}", round + 1, options.warmup + options.repeat));
  };
  keep_when_interrupted();
  return measure_validity(path, *executor, std::move(placements), how);
}

void run_validate(const ValidateOptions& options) {
  if (options.machine.empty() && (!options.calibrate || options.executor.devices != "cpu"))
    throw InputError("validate: no machine; required --machine, or --calibrate with cpu devices");
  if (options.placements < 2 || options.repeat == 0)
    throw InputError("--placements, --repeat: required at least 2 placements and 1 run");
  std::vector<std::string> inputs = options.graphs;
  inputs.insert(inputs.end(), {options.machine, options.policy.checkpoint});
  check_outputs(inputs, {{"--plot", options.plot}, {"--json", options.json}, {"--html", options.html}});
  const std::unique_ptr<LearnedPolicy> policy =
      load_policy(options.policy.checkpoint, {.samples = options.policy.samples});
  ValidityResult results;
  for (const std::string& path : options.graphs) {
    if (interrupted()) break;
    Validity result = validate(path, options, *policy);
    if (!result.samples.empty())
      results.graphs.push_back(std::move(result));
    else if (!interrupted())
      throw InputError(fmt::format("{}: found fewer than two placements that differ and fit; required two", path));
  }
  if (results.graphs.empty()) throw RunCancelled("validate: interrupted before two placements were measured");
  if (!options.plot.empty()) write_file_atomically(options.plot, plot_to_svg(scatter_plot(results)));
  present(options, results);
}

}  // namespace

void add_validate(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("validate", "Compare predicted with measured times of many placements");
  auto options = std::make_shared<ValidateOptions>();
  verb->add_option("graphs", options->graphs, "Graphs with programs or, emulated, any graphs")->required();
  add_machine_flag(*verb, *options, false);
  verb->add_flag("--calibrate", options->calibrate,
                 "Calibrate in the same rounds, on other placements, so that predictions are of the same time as runs");
  add_executor_flags(*verb, options->executor);
  add_policy_flags(*verb, options->policy);
  verb->add_option("--placements", options->placements, "Per graph: random, classical and learned ones")
      ->capture_default_str();
  verb->add_option("--repeat", options->repeat, "Runs of each, in rounds over all of them")
      ->check(whole_number())
      ->capture_default_str();
  verb->add_option("--warmup", options->warmup, "Rounds before them")->check(whole_number())->capture_default_str();
  verb->add_option("--plot", options->plot, "Scatter of measured against predicted, as SVG")->type_name("FILE");
  add_rule_flags(*verb, *options);
  add_graph_flags(*verb, *options);
  add_output_flags(*verb, *options);
  verb->footer(
      "Example:\n  doppler validate g.json --calibrate --plot scatter.svg\n"
      "  doppler calibrate g.json -o box.json && doppler validate g.json --machine box.json");
  verb->callback([options] { run_validate(*options); });
}

}  // namespace doppler
