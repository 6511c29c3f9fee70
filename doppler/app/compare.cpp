#include <algorithm>
#include <exception>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/api/judge.h"
#include "doppler/app/console.h"
#include "doppler/app/flags/policies.h"
#include "doppler/app/loading.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/place/cheap_methods.h"
#include "doppler/report/text.h"
#include "doppler/results.h"

namespace doppler {
namespace {

struct CompareOptions : Options {
  PolicyOptions policy;
  std::vector<std::string> graphs;
  std::string methods;  // comma-separated; empty: all
};

// In the order given, each once.
std::vector<const Method*> chosen_methods(const std::string& names) {
  std::vector<const Method*> chosen;
  if (names.empty()) {
    // Methods that have to be trained first are compared on request.
    for (const Method& method : methods())
      if (method.family != Method::Family::learned || comes_with_policy(method)) chosen.push_back(&method);
    return chosen;
  }
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    const Method* method = &method_by_name(std::string_view(names).substr(begin, end - begin));
    if (std::find(chosen.begin(), chosen.end(), method) == chosen.end()) chosen.push_back(method);
    begin = end + 1;
  }
  return chosen;
}

// The policy that `auto` uses and, by learned method, its policy as it stands, if there is one, and with --train the one
// that is trained on each graph.
struct Policies {
  struct Pair {
    std::unique_ptr<LearnedPolicy> zero_shot, trained;
  };
  std::unique_ptr<LearnedPolicy> usual;
  std::map<std::string_view, Pair> learned;
};
Policies load_policies(const CompareOptions& options, const std::vector<const Method*>& chosen) {
  TrainedPolicyOptions answering = answer_options(options.policy);
  const bool trains = answering.train > 0;
  Policies policies;
  TrainedPolicyOptions as_it_stands = answering;
  as_it_stands.train = 0;
  // A checkpoint is for the method whose policy it is; the other learned methods go without.
  const std::string& path = options.policy.checkpoint;
  policies.usual = load_policy(path, as_it_stands);
  for (const Method* method : chosen) {
    if (method->family != Method::Family::learned) continue;
    const std::string own = policies.usual->name() == method->name ? path : "";
    Policies::Pair& pair = policies.learned[method->name];
    if (!own.empty() || comes_with_policy(*method) || !trains)
      pair.zero_shot = load_policy(*method, own, as_it_stands, options.seed);
    if (trains) pair.trained = load_policy(*method, own, answering, options.seed);
  }
  return policies;
}

Outcome run_method(const LoadedProblem& loaded, const CompareOptions& options, const Method& method,
                   const LearnedPolicy& policy, const LowerBound& bound, ProgressLine& progress) {
  progress.start(method.name);
  MethodOptions method_options = method_options_from(options);
  method_options.policy = &policy;
  method_options.on_progress = [&](const Progress& state) { progress.show(state); };
  const auto nothing = [&](const std::exception& why) {
    Outcome outcome = outcome_of(loaded.problem, loaded.file.path, bound);
    outcome.made.seed = options.seed;
    outcome.made.method = outcome.made.winner = method.name;
    outcome.feasible = false;
    outcome.reason = why.what();
    return outcome;
  };
  try {
    ExactObjective objective(loaded.problem);
    const Result result = place(objective, method, method_options, bound);
    Outcome outcome = outcome_of(loaded.problem, loaded.file.path, result);
    if (!result.feasible) outcome.reason = "exceeds memory";
    return outcome;
  } catch (const InfeasibleError& error) {
    return nothing(error);
  } catch (const InputError& error) {
    if (method.family != Method::Family::learned) throw;
    return nothing(error);  // The graph is too large for the policy, which is no reason to lose the other rows.
  }
}

// The methods asked for, in order, and the strongest baseline if it was not among them.
Comparison run_methods(const LoadedProblem& loaded, const CompareOptions& options,
                       const std::vector<const Method*>& chosen, const Policies& policies, const LowerBound& bound) {
  ProgressLine progress(options.quiet, loaded.file.path, loaded.problem.graph().unitless());
  std::vector<Outcome> outcomes;
  for (const Method* method : chosen) {
    if (interrupt_flag()->load()) break;
    if (method->family != Method::Family::learned) {
      outcomes.push_back(run_method(loaded, options, *method, *policies.usual, bound, progress));
      continue;
    }
    const auto& [zero_shot, specialised] = policies.learned.at(method->name);
    if (zero_shot) outcomes.push_back(run_method(loaded, options, *method, *zero_shot, bound, progress));
    if (!specialised) continue;
    Outcome trained = run_method(loaded, options, *method, *specialised, bound, progress);
    const std::string name = fmt::format("{} trained", method->name);
    if (trained.made.winner == trained.made.method) trained.made.winner = name;
    trained.made.method = name;
    outcomes.push_back(std::move(trained));
  }
  // The best of the cheap methods is in every table, asked for or not, so that no method shines for want of a rival.
  std::vector<Outcome> baselines;
  for (const CheapMethod& cheap : cheap_methods()) {
    if (!cheap.promised) continue;
    const std::string_view name = cheap.name;
    const auto has_name = [&](const Outcome& outcome) { return outcome.made.method == name; };
    const auto asked = std::find_if(outcomes.begin(), outcomes.end(), has_name);
    if (asked != outcomes.end())
      baselines.push_back(*asked);
    else if (!interrupt_flag()->load())
      baselines.push_back(run_method(loaded, options, method_by_name(name), *policies.usual, bound, progress));
  }
  const auto strongest = std::min_element(baselines.begin(), baselines.end(), better);
  Comparison comparison;
  for (Outcome& outcome : outcomes) comparison.rows.push_back({std::move(outcome), loaded.problem.op_count(), false});
  if (strongest == baselines.end()) return comparison;
  const bool asked = std::any_of(comparison.rows.begin(), comparison.rows.end(), [&](const ComparisonRow& row) {
    return row.outcome.made.method == strongest->made.method;
  });
  if (!asked) comparison.rows.push_back({*strongest, loaded.problem.op_count(), true});
  return comparison;
}

void run_compare(const CompareOptions& options) {
  std::vector<std::string> inputs = options.graphs;
  inputs.insert(inputs.end(), {options.machine, options.policy.checkpoint});
  check_outputs(inputs, {{"--json", options.json}});
  const std::vector<const Method*> chosen = chosen_methods(options.methods);
  const bool learned =
      std::any_of(chosen.begin(), chosen.end(), [](const Method* m) { return m->family == Method::Family::learned; });
  if (!options.policy.train.empty() && !learned)
    throw InputError(fmt::format("--train: required {} among --methods", learned_methods()));
  const Policies policies = load_policies(options, chosen);
  method_options_from(options);         // a bad --time is better found before the graphs are read
  std::vector<LoadedProblem> problems;  // all of them first: a bad file must not cost finished work
  const Machine machine = machine_from(options);
  for (const std::string& path : options.graphs) problems.push_back(load(path, machine, options));

  keep_when_interrupted();
  Comparison all;
  std::string nothing_feasible;
  std::exception_ptr unwritable;  // Standard output failed, which must not cost the file.
  for (const LoadedProblem& loaded : problems) {
    if (interrupt_flag()->load()) break;
    const LowerBound bound = lower_bound(loaded.problem, method_options_from(options).budget);
    Comparison found = run_methods(loaded, options, chosen, policies, bound);
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
  if (all.rows.empty() && interrupt_flag()->load()) throw RunCancelled(kNothingToKeep);
  write_json_if_asked(options, to_json(all));
  if (unwritable) std::rethrow_exception(unwritable);
  if (!nothing_feasible.empty() && !interrupt_flag()->load())
    throw InfeasibleError(fmt::format("{}: no method found a feasible placement", nothing_feasible));
}

}  // namespace

void add_compare(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("compare", "Run several methods and compare what they find");
  auto options = std::make_shared<CompareOptions>();
  verb->add_option("graphs", options->graphs, "Graphs in any format of docs/formats.md")->required();
  add_machine_flag(*verb, *options, true);
  verb->add_option("--methods", options->methods,
                   "Comma-separated; default: all of 'doppler place --help' that need no training first")
      ->type_name("METHOD,…");
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
