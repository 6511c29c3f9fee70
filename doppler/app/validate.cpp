#include <cmath>

#include <nlohmann/json.hpp>

#include "doppler/app/console.h"
#include "doppler/app/policies.h"
#include "doppler/app/rig.h"
#include "doppler/app/varied_placements.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/base/pin_thread.h"
#include "doppler/base/statistics.h"
#include "doppler/engine/calibration.h"
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
  unsigned repeat = 15, warmup = 1;
  bool calibrate = false;
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

// Runs placements in rounds, so that a box that is slow for a while is so to all of them.
class Rounds {
 public:
  Rounds(const Study& study, const ValidateOptions& options)
      : study_(study),
        options_(options),
        rig_(study, options.rig, options.seed),
        calibration_(study.machine(), options.rig.devices == "emulated") {}

  // Ctrl-C keeps what was measured. By placement; none if it does not fit in memory.
  std::vector<std::vector<Seconds>> measure(const std::vector<VariedPlacement>& placements) {
    ProgressLine progress(options_.quiet, study_.path(), study_.graph().unitless());
    std::vector<Placement> others;  // to calibrate with
    Rng rng(mix(options_.seed, 1));
    for (unsigned i = 0; options_.calibrate && i < kCalibrationPlacements; ++i)
      others.push_back(random_placement(study_.problem(), rng));
    std::vector<std::vector<Seconds>> times(placements.size());
    try {
      for (unsigned round = 0; round < options_.warmup + options_.repeat; ++round) {
        const bool counts = round >= options_.warmup;
        for (std::size_t i = 0; i < placements.size(); ++i)
          if (run(placements[i].placement) && counts) times[i].push_back(time_);
        for (const Placement& other : others)
          if (run(other) && counts) calibration_.add(study_.problem(), other, rig_.engine().timeline());
        progress.show_text("validate", fmt::format("round {} of {}", round + 1, options_.warmup + options_.repeat));
      }
    } catch (const RunCancelled&) {
    }
    return times;
  }

  Machine machine() const { return options_.calibrate ? calibration_.machine("calibrated") : study_.machine(); }

 private:
  static constexpr unsigned kCalibrationPlacements = 12;

  bool run(const Placement& placement) {
    try {
      time_ = rig_.engine().run(placement);
      return true;
    } catch (const InfeasibleError&) {  // a random one may not fit
      return false;
    }
  }

  const Study& study_;
  const ValidateOptions& options_;
  Rig rig_;
  Calibration calibration_;
  Seconds time_ = 0;
};

Validity validate(const std::string& path, const ValidateOptions& options, const LearnedPolicy& policy) {
  Machine machine = options.machine.empty() ? bare_machine("cpu", usable_cores()) : load_machine(options.machine);
  const Study study(path, load_graph(path, options), std::move(machine), options);
  const std::vector<VariedPlacement> varied =
      varied_placements(study.problem(), policy, options.placements, options.seed);
  Rounds rounds(study, options);
  const std::vector<std::vector<Seconds>> times = rounds.measure(varied);
  std::vector<std::size_t> ran;
  std::vector<std::vector<Seconds>> times_of_ran;
  for (std::size_t i = 0; i < varied.size(); ++i) {
    if (times[i].empty()) continue;
    ran.push_back(i);
    times_of_ran.push_back(times[i]);
  }
  if (ran.size() < 2) return {path, {}};
  const std::vector<Seconds> measured = polished_rows(times_of_ran);
  const Machine predicts = rounds.machine();
  const Costs costs(study.graph(), predicts);
  const Problem problem(costs, study.problem().rules());
  Simulator simulator(problem);
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < ran.size(); ++i) {
    const VariedPlacement& placement = varied[ran[i]];
    samples.push_back({placement.origin, simulator.makespan(placement.placement), measured[i]});
  }
  return judge(path, std::move(samples));
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
  if (options.machine.empty() && (!options.calibrate || options.rig.devices != "cpu"))
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
                 "Calibrate in the same rounds, on other placements: box and predictions have the same weather");
  add_rig_flags(*verb, options->rig);
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
