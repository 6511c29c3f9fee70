#include <cmath>

#include <nlohmann/json.hpp>

#include "doppler/app/console.h"
#include "doppler/app/policies.h"
#include "doppler/app/rig.h"
#include "doppler/app/varied_placements.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/statistics.h"
#include "doppler/report/plot.h"
#include "doppler/report/table.h"
#include "doppler/sim/simulator.h"

namespace doppler {
namespace {

struct ValidateOptions : Options {
  std::vector<std::string> graphs;
  std::string plot;
  RigOptions rig;
  PolicyOptions policy;
  std::size_t placements = 60;
  unsigned repeat = 5, warmup = 1;
};

struct Sample {
  std::string origin;
  Seconds simulated, measured;
};

// How well the simulator predicts one graph.
struct Validity {
  std::string graph;
  std::vector<Sample> samples;
  double pearson = 0, spearman = 0;
  double error = 0;  // mean of |simulated / measured - 1|
  double bias = 0;   // mean of simulated / measured - 1
};

Validity judge(std::string graph, std::vector<Sample> samples) {
  Validity result{std::move(graph), std::move(samples)};
  std::vector<double> simulated, measured;
  for (const Sample& sample : result.samples) {
    simulated.push_back(sample.simulated);
    measured.push_back(sample.measured);
    const double relative = sample.simulated / sample.measured - 1;
    result.error += std::abs(relative) / static_cast<double>(result.samples.size());
    result.bias += relative / static_cast<double>(result.samples.size());
  }
  result.pearson = pearson(simulated, measured);
  result.spearman = spearman(simulated, measured);
  return result;
}

// Ctrl-C keeps the placements that were measured.
Validity validate(const std::string& path, const ValidateOptions& options, const LearnedPolicy& policy) {
  const Study study(path, options);
  Rig rig(study, options.rig, options.seed);
  Simulator simulator(study.problem());
  ProgressLine progress(options.quiet, path, study.graph().unitless());
  std::vector<Sample> samples;
  for (VariedPlacement& varied : varied_placements(study.problem(), policy, options.placements, options.seed)) {
    try {
      const Seconds measured = median(measure(rig.engine(), varied.placement, options.warmup, options.repeat));
      samples.push_back({std::move(varied.origin), simulator.makespan(varied.placement), measured});
      progress.show_text("validate", fmt::format("{} of {}", samples.size(), options.placements));
    } catch (const InfeasibleError&) {  // a random one may not fit
    } catch (const RunCancelled&) {
      break;
    }
  }
  return samples.size() < 2 ? Validity{path, {}} : judge(path, std::move(samples));
}

std::string describe(const std::vector<Validity>& results) {
  Table table({{"graph", Table::Align::left},
               {"placements"},
               {"Pearson"},
               {"Spearman"},
               {"mean error"},
               {"bias"},
               {"fastest"},
               {"slowest"}});
  for (const Validity& result : results) {
    std::vector<double> measured;
    for (const Sample& sample : result.samples) measured.push_back(sample.measured);
    table.add_row({result.graph, fmt::to_string(result.samples.size()), fmt::format("{:.3f}", result.pearson),
                   fmt::format("{:.3f}", result.spearman), fmt::format("{:.1f} %", 100 * result.error),
                   fmt::format("{:+.1f} %", 100 * result.bias), format_seconds(quantile(measured, 0)),
                   format_seconds(quantile(measured, 1))});
  }
  return table.text();
}

std::string to_json(const std::vector<Validity>& results) {
  nlohmann::ordered_json file;
  for (const Validity& result : results) {
    nlohmann::ordered_json row = {{"graph", result.graph},
                                  {"pearson", result.pearson},
                                  {"spearman", result.spearman},
                                  {"mean_error", result.error},
                                  {"bias", result.bias}};
    for (const Sample& sample : result.samples)
      row["samples"].push_back(
          {{"origin", sample.origin}, {"simulated", sample.simulated}, {"measured", sample.measured}});
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
    for (const Sample& sample : result.samples)
      series.x.push_back(sample.simulated), series.y.push_back(sample.measured);
    plot.series.push_back(std::move(series));
  }
  return plot;
}

void run_validate(const ValidateOptions& options) {
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
  add_machine_flag(*verb, *options, true);
  add_rig_flags(*verb, options->rig);
  add_policy_flags(*verb, options->policy);
  verb->add_option("--placements", options->placements, "Per graph: random, classical and learned ones")
      ->capture_default_str();
  verb->add_option("--repeat", options->repeat, "Runs of each, of which the median counts")
      ->check(whole_number())
      ->capture_default_str();
  verb->add_option("--warmup", options->warmup, "Runs before them")->check(whole_number())->capture_default_str();
  verb->add_option("--plot", options->plot, "Scatter of measured against predicted, as SVG")->type_name("FILE");
  add_rule_flags(*verb, *options);
  add_graph_flags(*verb, *options);
  add_output_flags(*verb, *options);
  verb->footer(
      "Example:\n  doppler calibrate g.json -o box.json\n  doppler validate g.json --machine box.json --plot "
      "scatter.svg");
  verb->callback([options] { run_validate(*options); });
}

}  // namespace doppler
