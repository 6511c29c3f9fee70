#include <algorithm>
#include <cmath>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
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
#include "doppler/calibrate/calibration.h"
#include "doppler/report/plot.h"
#include "doppler/report/table.h"
#include "doppler/sim/objective.h"

namespace doppler {
namespace {

struct ValidateOptions : Options {
  std::vector<std::string> graphs;
  std::string plot;
  RigOptions rig;
  PolicyOptions policy;
  std::size_t placements = 60;
  unsigned repeat = 30, warmup = 1;
  bool calibrate = false;
};

struct Sample {
  std::string origin;
  Seconds simulated, measured;
  std::vector<Seconds> times;  // what `measured` is made of
};

// How well the simulator predicts one graph.
struct Validity {
  std::string graph;
  std::vector<Sample> samples;
  double pearson = 0, spearman = 0;
  double pearson_of_medians = 0, spearman_of_medians = 0;  // with plain medians of the runs as measured times
  double error = 0;                                        // mean of |simulated / measured - 1|
  double bias = 0;                                         // mean of simulated / measured - 1
  // What Spearman would be between these measured times and others like them. None if a placement ran only once.
  std::optional<double> repeatability = std::nullopt;
};

// Of runs 0, 2, 4 … (or 1, 3, 5 …) of each. None if one has no such run.
std::optional<std::vector<Seconds>> measured_in_half(const std::vector<Sample>& samples, std::size_t first) {
  std::vector<std::vector<Seconds>> half;
  for (const Sample& sample : samples) {
    std::vector<Seconds>& times = half.emplace_back();
    for (std::size_t i = first; i < sample.times.size(); i += 2) times.push_back(sample.times[i]);
    if (times.empty()) return std::nullopt;
  }
  return steady_medians(half);
}

// One half of the runs against the other; twice as many runs agree better, as Spearman and Brown say (1910).
std::optional<double> repeatability(const std::vector<Sample>& samples) {
  const auto even = measured_in_half(samples, 0), odd = measured_in_half(samples, 1);
  if (!even || !odd) return std::nullopt;
  const double halves = std::max(0.0, spearman(*even, *odd));
  return 2 * halves / (1 + halves);
}

Validity judge(std::string graph, std::vector<Sample> samples) {
  Validity result{std::move(graph), std::move(samples)};
  std::vector<double> simulated, measured, medians;
  for (const Sample& sample : result.samples) {
    simulated.push_back(sample.simulated);
    measured.push_back(sample.measured);
    medians.push_back(median(sample.times));
    const double relative = sample.simulated / sample.measured - 1;
    result.error += std::abs(relative) / static_cast<double>(result.samples.size());
    result.bias += relative / static_cast<double>(result.samples.size());
  }
  result.pearson = pearson(simulated, measured);
  result.spearman = spearman(simulated, measured);
  result.pearson_of_medians = pearson(simulated, medians);
  result.spearman_of_medians = spearman(simulated, medians);
  result.repeatability = repeatability(result.samples);
  return result;
}

// In rounds over all placements, and over those that calibrate. Ctrl-C keeps what was measured.
void take_turns(Rig& rig, const LoadedProblem& loaded, const ValidateOptions& options, std::vector<Turn>& turns,
                Calibration& calibration) {
  constexpr unsigned kCalibrationPlacements = 12;
  ProgressLine progress(options.quiet, loaded.file.path, loaded.problem.graph().unitless());
  Rng rng(options.seed);
  std::vector<Turn> others;
  if (options.calibrate) others = calibration_turns(loaded.problem, kCalibrationPlacements, options.seed);
  try {
    for (unsigned round = 0; round < options.warmup + options.repeat; ++round) {
      const bool counts = round >= options.warmup;
      run_round(rig.engine(), others, rng, [&](const Turn& turn, Seconds) {
        if (counts) calibration.add(loaded.problem, turn.placement, rig.engine().timeline());
      });
      run_round(rig.engine(), turns, rng, [&](Turn& turn, Seconds time) {
        if (counts) turn.times.push_back(time);
      });
      progress.show_text("validate", fmt::format("round {} of {}", round + 1, options.warmup + options.repeat));
    }
  } catch (const RunCancelled&) {
  }
}

// How the simulator of `machine` sees them.
std::vector<Seconds> predict(const Problem& problem, const Machine& machine, const std::vector<Turn>& turns) {
  ExpectedObjective expected(problem.on(machine));
  std::vector<Seconds> predicted;
  for (const Turn& turn : turns) predicted.push_back(expected.value(turn.placement));
  return predicted;
}

// No samples: fewer than two placements ran.
Validity validate(const std::string& path, const ValidateOptions& options, const LearnedPolicy& policy) {
  const Machine machine = options.machine.empty() ? bare_machine("cpu", usable_cores()) : machine_from(options);
  const LoadedProblem loaded = load(path, machine, options, Purpose::execution);
  Rig rig(loaded, options.rig, options.seed);
  std::vector<Turn> turns;
  std::vector<std::string> origins;
  for (VariedPlacement& varied : varied_placements(loaded.problem, policy, options.placements, options.seed)) {
    turns.push_back({std::move(varied.placement), {}});
    origins.push_back(std::move(varied.origin));
  }
  Calibration calibration(loaded.problem.machine(), options.rig.devices == "emulated");
  take_turns(rig, loaded, options, turns, calibration);
  if (options.calibrate && calibration.empty()) return {path, {}};
  std::vector<std::vector<Seconds>> times;
  std::vector<std::size_t> ran;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (!turns[i].fits || turns[i].times.empty()) continue;
    ran.push_back(i);
    times.push_back(turns[i].times);
  }
  if (ran.size() < 2) return {path, {}};
  const std::vector<Seconds> measured = steady_medians(times);
  const std::vector<Seconds> predicted =
      predict(loaded.problem, options.calibrate ? calibration.machine("calibrated") : loaded.problem.machine(), turns);
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < ran.size(); ++i)
    samples.push_back({origins[ran[i]], predicted[ran[i]], measured[i], std::move(times[i])});
  return judge(path, std::move(samples));
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
    for (const Sample& sample : result.samples) measured.push_back(sample.measured);
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
    for (const Sample& sample : result.samples)
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
