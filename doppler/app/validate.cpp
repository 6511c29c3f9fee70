#include <nlohmann/json.hpp>

#include "doppler/app/console.h"
#include "doppler/app/executor_flags.h"
#include "doppler/app/policies.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/pin_thread.h"
#include "doppler/base/statistics.h"
#include "doppler/calibrate/calibration_runs.h"
#include "doppler/calibrate/validity.h"
#include "doppler/report/plot.h"
#include "doppler/report/table.h"
#include "doppler/sim/objective.h"

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
  const std::shared_ptr<Executor> executor = make_executor(loaded, options.executor, options.seed);
  std::vector<VariedPlacement> placements =
      varied_placements(loaded.problem, sources_for(loaded.problem, policy), options.placements, options.seed);
  ProgressLine progress(options.quiet, loaded.file.path, loaded.problem.graph().unitless());
  ValidityOptions how{options.repeat, options.warmup, options.calibrate, options.seed};
  how.on_round = [&](unsigned round) {
    progress.show_text("validate", fmt::format("round {} of {}", round + 1, options.warmup + options.repeat));
  };
  return measure_validity(path, *executor, std::move(placements), how);
}

std::string describe(const std::vector<Validity>& results) {
  Table table({{"graph", Table::Align::left},
               {"placements"},
               {"Pearson"},
               {"Spearman"},
               {"by medians"},
               {"repeatable"},
               {"mean error"},
               {"bias"},
               {"fastest"},
               {"slowest"}});
  for (const Validity& result : results) {
    std::vector<double> measured;
    for (const Validity::Sample& sample : result.samples) measured.push_back(sample.measured);
    table.add_row({result.graph, fmt::to_string(result.samples.size()), fmt::format("{:.3f}", result.pearson),
                   fmt::format("{:.3f}", result.spearman),
                   fmt::format("{:.3f} {:.3f}", result.pearson_of_medians, result.spearman_of_medians),
                   result.repeatability ? fmt::format("{:.3f}", *result.repeatability) : "-",
                   fmt::format("{:.1f} %", 100 * result.error), fmt::format("{:+.1f} %", 100 * result.bias),
                   format_seconds(quantile(measured, 0)), format_seconds(quantile(measured, 1))});
  }
  return table.text();
}

std::string to_json(const std::vector<Validity>& results) {
  nlohmann::ordered_json file;
  for (const Validity& result : results) {
    nlohmann::ordered_json row = {{"graph", result.graph},
                                  {"pearson", result.pearson},
                                  {"spearman", result.spearman},
                                  {"pearson_of_medians", result.pearson_of_medians},
                                  {"spearman_of_medians", result.spearman_of_medians},
                                  {"mean_error", result.error},
                                  {"bias", result.bias}};
    if (result.repeatability) row["repeatability"] = *result.repeatability;
    for (const Validity::Sample& sample : result.samples)
      row["samples"].push_back({{"origin", sample.origin},
                                {"simulated", sample.simulated},
                                {"measured", sample.measured},
                                {"times", sample.times}});
    file["results"].push_back(std::move(row));
  }
  return file.dump(2) + "\n";
}

Plot scatter(const std::vector<Validity>& results) {
  Plot plot;
  plot.title = "Measured against simulated time";
  plot.x_title = "simulated, s";
  plot.y_title = "measured, s";
  plot.diagonal = true;
  for (const Validity& result : results) {
    Plot::Series series;
    series.label = fmt::format("{}: Pearson {:.3f}, Spearman {:.3f}", result.graph, result.pearson, result.spearman);
    for (const Validity::Sample& sample : result.samples)
      series.x.push_back(sample.simulated), series.y.push_back(sample.measured);
    plot.series.push_back(std::move(series));
  }
  return plot;
}

void run_validate(const ValidateOptions& options) {
  if (options.machine.empty() && (!options.calibrate || options.executor.devices != "cpu"))
    throw InputError("validate: no machine; required --machine, or --calibrate with cpu devices");
  if (options.placements < 2 || options.repeat == 0)
    throw InputError("--placements, --repeat: required at least 2 placements and 1 run");
  const std::unique_ptr<LearnedPolicy> policy = load_policy(options.policy);
  std::vector<Validity> results;
  for (const std::string& path : options.graphs) {
    if (interrupt_flag()->load()) break;
    Validity result = validate(path, options, *policy);
    if (!result.samples.empty())
      results.push_back(std::move(result));
    else if (!interrupt_flag()->load())
      throw InputError(fmt::format("{}: found fewer than two placements that differ and fit; required two", path));
  }
  if (results.empty()) throw InputError("validate: interrupted before two placements were measured");
  if (!options.plot.empty()) write_file_atomically(options.plot, plot_to_svg(scatter(results)));
  write_json_if_asked(options, to_json(results));
  print_text(options, describe(results));
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
