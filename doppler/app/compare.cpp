#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "doppler/app/console.h"
#include "doppler/app/policies.h"
#include "doppler/app/study.h"
#include "doppler/app/verbs.h"
#include "doppler/base/error.h"
#include "doppler/report/table.h"

namespace doppler {
namespace {

struct CompareOptions : Options {
  PolicyOptions policy;
  std::vector<std::string> graphs;
  std::string methods;  // comma-separated; empty: all
};

// Cheap and strong: the best of these is in every table, asked for or not, so that no method shines for want
// of a rival.
constexpr std::string_view kBaselines[] = {"single", "heft", "etf", "metis"};

// In the order given, each once.
std::vector<const Method*> chosen_methods(const std::string& names) {
  std::vector<const Method*> chosen;
  if (names.empty()) {
    for (const Method& method : methods()) chosen.push_back(&method);
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

// The learned policy as it stands and, with --train, trained on each graph too.
struct Policies {
  std::unique_ptr<LearnedPolicy> zero_shot, trained;
};
Policies load_policies(const PolicyOptions& options) {
  PolicyOptions untrained = options;
  untrained.train.clear();
  return {load_policy(untrained), options.train.empty() ? nullptr : load_policy(options)};
}

Outcome run_method(const Study& study, const CompareOptions& options, const Method& method, const LearnedPolicy& policy,
                   const LowerBound& bound, ProgressLine& progress) {
  progress.start(method.name);
  MethodOptions method_options = method_options_from(options);
  method_options.policy = &policy;
  method_options.on_progress = [&](const Progress& state) { progress.show(state); };
  try {
    const Result result = place(study.problem(), method, method_options, bound);
    Outcome outcome = outcome_of(study, options, result);
    if (!result.feasible) outcome.reason = "exceeds memory";
    outcome.expected = expected_on_machine(study, result.placement);
    return outcome;
  } catch (const InfeasibleError& error) {
    Outcome outcome = outcome_of(study, options, bound);
    outcome.made.method = outcome.made.winner = method.name;
    outcome.feasible = false;
    outcome.reason = error.what();
    return outcome;
  }
}

// By what is to be expected, where times vary: all outcomes of a graph say it, or none.
bool better(const Outcome& a, const Outcome& b) {
  return a.feasible && (!b.feasible || a.expected.value_or(a.made.makespan) < b.expected.value_or(b.made.makespan));
}

// The methods asked for, in order, and the strongest baseline if it was not among them.
std::vector<Outcome> run_methods(const Study& study, const CompareOptions& options,
                                 const std::vector<const Method*>& chosen, const Policies& policies,
                                 const LowerBound& bound) {
  ProgressLine progress(options.quiet, study.path(), study.graph().unitless());
  std::vector<Outcome> outcomes;
  for (const Method* method : chosen) {
    if (interrupt_flag()->load()) break;
    outcomes.push_back(run_method(study, options, *method, *policies.zero_shot, bound, progress));
    if (method->name != "doppler" || !policies.trained) continue;
    Outcome trained = run_method(study, options, *method, *policies.trained, bound, progress);
    if (trained.made.winner == trained.made.method) trained.made.winner = "doppler trained";
    trained.made.method = "doppler trained";
    outcomes.push_back(std::move(trained));
  }
  std::vector<Outcome> baselines;
  for (const std::string_view name : kBaselines) {
    const auto has_name = [&](const Outcome& outcome) { return outcome.made.method == name; };
    const auto asked = std::find_if(outcomes.begin(), outcomes.end(), has_name);
    if (asked != outcomes.end())
      baselines.push_back(*asked);
    else if (!interrupt_flag()->load())
      baselines.push_back(run_method(study, options, method_by_name(name), *policies.zero_shot, bound, progress));
  }
  const auto strongest = std::min_element(baselines.begin(), baselines.end(), better);
  if (strongest == baselines.end()) return outcomes;
  const bool asked = std::any_of(outcomes.begin(), outcomes.end(),
                                 [&](const Outcome& outcome) { return outcome.made.method == strongest->made.method; });
  if (!asked) outcomes.push_back(*strongest);
  return outcomes;
}

std::string note(const Outcome& outcome, bool added) {
  std::vector<std::string> notes;
  if (!outcome.feasible) notes.push_back("infeasible: " + outcome.reason);
  if (outcome.optimal) notes.push_back("proven optimal");
  if (outcome.made.winner != outcome.made.method) notes.push_back("won by " + outcome.made.winner);
  if (added) notes.push_back("added: strongest cheap baseline");
  return fmt::format("{}", fmt::join(notes, ", "));
}

std::string describe(const Study& study, const std::vector<Outcome>& outcomes, const std::vector<const Method*>& chosen,
                     const LowerBound& bound) {
  const auto asked_for = [&](const Outcome& outcome) {
    return std::any_of(chosen.begin(), chosen.end(),
                       [&](const Method* method) { return outcome.made.method.starts_with(method->name); });
  };
  const Problem& problem = study.problem();
  std::string text =
      fmt::format("{}: {} ops on {}, {}, links {}, lower bound {} ({})\n\n", study.path(), study.graph().op_count(),
                  study.machine().name(), to_string(problem.rules().discipline), to_string(problem.rules().links),
                  study.show_time(bound.value), to_string(bound.kind));
  const bool varies =
      std::any_of(outcomes.begin(), outcomes.end(), [](const Outcome& o) { return o.expected.has_value(); });
  std::vector<Table::Column> columns{{"method", Table::Align::left}, {"makespan"}};
  if (varies) columns.push_back({"expected"});
  columns.insert(columns.end(), {{"gap"}, {"time"}, {"", Table::Align::left}});
  Table table(std::move(columns));
  const auto best = std::min_element(outcomes.begin(), outcomes.end(), better);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    const bool is_best = outcome.feasible && i == static_cast<std::size_t>(best - outcomes.begin());
    std::vector<std::string> row{outcome.made.method, outcome.feasible ? study.show_time(outcome.made.makespan) : "-"};
    if (varies) row.push_back(outcome.feasible && outcome.expected ? study.show_time(*outcome.expected) : "-");
    row.insert(row.end(), {outcome.feasible ? fmt::format("{:.1f} %", 100 * outcome.gap) : "-",
                           fmt::format("{:.2f} s", outcome.seconds), note(outcome, !asked_for(outcome))});
    table.add_row(std::move(row), is_best);
  }
  return text + table.text();
}

void run_compare(const CompareOptions& options) {
  const std::vector<const Method*> chosen = chosen_methods(options.methods);
  const bool learned = std::any_of(chosen.begin(), chosen.end(), [](const Method* m) { return m->name == "doppler"; });
  if (!options.policy.train.empty() && !learned) throw InputError("--train: required doppler among --methods");
  const Policies policies = load_policies(options.policy);
  method_options_from(options);                 // a bad --time is better found before the graphs are read
  std::vector<std::unique_ptr<Study>> studies;  // all of them first: a bad file must not cost finished work
  for (const std::string& path : options.graphs) studies.push_back(std::make_unique<Study>(path, options));

  std::vector<Outcome> all;
  std::string nothing_feasible;
  for (const auto& study : studies) {
    if (interrupt_flag()->load()) break;
    const LowerBound bound = lower_bound(study->problem());
    const std::vector<Outcome> outcomes = run_methods(*study, options, chosen, policies, bound);
    print_text(options, (all.empty() ? "" : "\n") + describe(*study, outcomes, chosen, bound));
    if (std::none_of(outcomes.begin(), outcomes.end(), [](const Outcome& outcome) { return outcome.feasible; }))
      nothing_feasible += fmt::format("{}{}", nothing_feasible.empty() ? "" : ", ", study->path());
    all.insert(all.end(), outcomes.begin(), outcomes.end());
  }
  write_json_if_asked(options, comparison_to_json(all));
  if (interrupt_flag()->load()) {
    if (!options.quiet) complain("interrupted; these are the results so far");
  } else if (!nothing_feasible.empty()) {
    throw InfeasibleError(fmt::format("{}: no method found a feasible placement", nothing_feasible));
  }
}

}  // namespace

void add_compare(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("compare", "Run several methods and compare what they find");
  auto options = std::make_shared<CompareOptions>();
  verb->add_option("graphs", options->graphs, "Graphs in any format of docs/formats.md")->required();
  add_machine_flag(*verb, *options, true);
  verb->add_option("--methods", options->methods, "Comma-separated; default: all of 'doppler place --help'")
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
