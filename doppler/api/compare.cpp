#include <algorithm>
#include <map>
#include <memory>

#include "doppler/api/judge.h"
#include "doppler/api/method_options.h"
#include "doppler/api/policies.h"
#include "doppler/base/error.h"
#include "doppler/place/cheap_methods.h"

namespace doppler {
namespace {

// The methods in the order given, each once; all that need no training first if none is. near_single is left out then:
// it is `single` wherever that can be.
std::vector<const Method*> chosen_methods(const std::vector<std::string>& names) {
  std::vector<const Method*> chosen;
  for (const std::string& name : names) {
    const Method* method = &method_by_name(name);
    if (std::find(chosen.begin(), chosen.end(), method) == chosen.end()) chosen.push_back(method);
  }
  if (names.empty())
    for (const Method& method : methods())
      if (method.name != "near_single" && (method.family != Method::Family::learned || comes_with_policy(method)))
        chosen.push_back(&method);
  return chosen;
}

// The policy that `auto` uses and, by learned method, its policy as it stands, if there is one, and with options.train
// the one that is trained on the problem.
struct ComparedPolicies {
  struct Pair {
    std::shared_ptr<const LearnedPolicy> zero_shot, trained;
  };
  std::shared_ptr<const LearnedPolicy> usual;
  std::map<std::string_view, Pair> learned;
};

ComparedPolicies load_policies(const std::vector<const Method*>& chosen, const PlaceOptions& options) {
  const TrainedPolicyOptions trained{.samples = options.samples, .alone = options.alone, .train = options.train};
  TrainedPolicyOptions as_it_stands = trained;
  as_it_stands.train = 0;
  const bool trains = trained.train > 0;
  ComparedPolicies policies;
  policies.usual = load_policy(options.policy, as_it_stands);
  for (const Method* method : chosen) {
    if (method->family != Method::Family::learned) continue;
    // A checkpoint is for the method whose policy it is; the other learned methods go without.
    const std::string own = policies.usual->name() == method->name ? options.policy : "";
    ComparedPolicies::Pair& pair = policies.learned[method->name];
    if (!own.empty() || comes_with_policy(*method) || !trains)
      pair.zero_shot = load_policy(*method, own, as_it_stands, options.seed);
    if (trains) pair.trained = load_policy(*method, own, trained, options.seed);
  }
  const bool has_auto =
      std::any_of(chosen.begin(), chosen.end(), [](const Method* method) { return method->name == "auto"; });
  if (!options.policy.empty() && policies.learned.empty() && !has_auto)
    throw InputError(
        fmt::format("checkpoint: found no method that uses a policy; required auto or one of {}", learned_methods()));
  if (trains && policies.learned.empty())
    throw InputError(fmt::format("train: found no method that learns; required one of {}", learned_methods()));
  return policies;
}

// Runs one method after the other on one problem.
class ComparedMethods {
 public:
  ComparedMethods(const Problem& problem, const PlaceOptions& options)
      : problem_(problem),
        options_(options),
        objective_(objective_of(problem, options)),
        bound_(lower_bound(problem, budget_of(options))),
        expected_bound_(bound_on_expectation(problem, budget_of(options))) {}

  ComparisonRow run(const Method& method, const std::shared_ptr<const LearnedPolicy>& policy) {
    try {
      const Result result = place(*objective_, method, method_options(options_, budget_of(options_), policy), bound_);
      Outcome outcome = outcome_of(problem_, name(), result);
      outcome.objective = objective_->name();
      if (outcome.expected) outcome.expected_bound = expected_bound_;
      if (!result.feasible) outcome.reason = "exceeds memory";
      ComparisonRow row{std::move(outcome), problem_.op_count()};
      for (const DeviceUse& use : device_uses(result.timeline, problem_.machine()))
        row.utilisation.push_back(use.utilisation);
      return row;
    } catch (const InfeasibleError& error) {
      return {nothing(method, error), problem_.op_count()};
    } catch (const InputError& error) {
      if (method.family != Method::Family::learned) throw;
      return {nothing(method, error),
              problem_.op_count()};  // The graph is too large for the policy, which must not cost the other rows.
    }
  }
  bool interrupted() const { return options_.stop.stop_requested(); }

 private:
  std::string name() const { return options_.graph.empty() ? problem_.graph().title() : options_.graph; }
  Outcome nothing(const Method& method, const std::exception& why) const {
    Outcome outcome = outcome_of(problem_, name(), bound_);
    outcome.objective = objective_->name();
    outcome.made.seed = options_.seed;
    outcome.made.method = outcome.made.winner = method.name;
    outcome.feasible = false;
    outcome.reason = why.what();
    return outcome;
  }

  const Problem& problem_;
  const PlaceOptions& options_;
  std::shared_ptr<Objective> objective_;
  LowerBound bound_;
  std::optional<Seconds> expected_bound_;
};

// The best of the cheap methods is in every table, asked for or not, so that no method shines for want of a rival.
void add_strongest_baseline(Comparison& comparison, ComparedMethods& methods, const ComparedPolicies& policies) {
  std::vector<ComparisonRow> baselines;
  for (const CheapMethod& cheap : cheap_methods()) {
    if (!cheap.promised) continue;
    const auto asked = std::find_if(comparison.rows.begin(), comparison.rows.end(),
                                    [&](const ComparisonRow& row) { return row.outcome.made.method == cheap.name; });
    if (asked != comparison.rows.end())
      baselines.push_back(*asked);
    else if (!methods.interrupted())
      baselines.push_back(methods.run(method_by_name(cheap.name), policies.usual));
  }
  const auto strongest =
      std::min_element(baselines.begin(), baselines.end(),
                       [](const ComparisonRow& a, const ComparisonRow& b) { return better(a.outcome, b.outcome); });
  if (strongest == baselines.end()) return;
  const bool there = std::any_of(comparison.rows.begin(), comparison.rows.end(), [&](const ComparisonRow& row) {
    return row.outcome.made.method == strongest->outcome.made.method;
  });
  if (there) return;
  strongest->added = true;
  comparison.rows.push_back(std::move(*strongest));
}

}  // namespace

void check(const std::vector<std::string>& methods, const PlaceOptions& options) {
  load_policies(chosen_methods(methods), options);
}

Comparison compare(const Problem& problem, const std::vector<std::string>& names, const PlaceOptions& options) {
  const std::vector<const Method*> chosen = chosen_methods(names);
  const ComparedPolicies policies = load_policies(chosen, options);
  check_objective(problem, options);
  ComparedMethods methods(problem, options);
  Comparison comparison;
  const auto add = [&](ComparisonRow row) { comparison.rows.push_back(std::move(row)); };
  for (const Method* method : chosen) {
    if (methods.interrupted()) break;
    if (method->family != Method::Family::learned) {
      add(methods.run(*method, policies.usual));
      continue;
    }
    const auto& [zero_shot, trained] = policies.learned.at(method->name);
    if (zero_shot) add(methods.run(*method, zero_shot));
    if (!trained) continue;
    ComparisonRow row = methods.run(*method, trained);
    Outcome& outcome = row.outcome;
    const std::string name = fmt::format("{} trained", method->name);
    if (outcome.made.winner == outcome.made.method) outcome.made.winner = name;
    outcome.made.method = name;
    add(std::move(row));
  }
  add_strongest_baseline(comparison, methods, policies);
  return comparison;
}

}  // namespace doppler
