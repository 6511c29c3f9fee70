#include "doppler/place.h"

#include "doppler/api/judge.h"
#include "doppler/api/method_options.h"
#include "doppler/api/policies.h"
#include "doppler/base/error.h"
#include "doppler/place/simplify.h"
#include "doppler/report/export.h"

namespace doppler {
namespace {

// Shares of the time, at most, for what is not the search.
constexpr double kBoundShare = 0.2, kSingleDeviceShare = 0.15;

// The policy that the options ask for. Throws InputError if the method makes nothing of it, or if it cannot be read.
std::unique_ptr<LearnedPolicy> load(const Method& method, const PlaceOptions& options) {
  if (options.train > 0 && method.family != Method::Family::learned)
    throw InputError(fmt::format("train: found method '{}', which does not learn; required one of {}", method.name,
                                 learned_methods()));
  if (!options.policy.empty() && method.family != Method::Family::learned && method.name != "auto")
    throw InputError(fmt::format("checkpoint: found method '{}', which uses no policy; required auto or one of {}",
                                 method.name, learned_methods()));
  return load_policy(method, options.policy,
                     {.samples = options.samples, .alone = options.alone, .train = options.train}, options.seed);
}

std::string describe_budget(const PlaceOptions& options) {
  if (options.train > 0) return fmt::format("{}s of training", options.train);
  if (options.evaluations) return fmt::format("{} evaluations", *options.evaluations);
  return fmt::format("{}s{}", options.time, options.cpu_time ? " of the processor" : "");
}

}  // namespace

std::string device_map(const GraphFile& file, const Placement& placement, const Machine& machine) {
  return export_placement(ExportFormat::device_map, file, placement, machine);
}

PlaceResult place(const Problem& problem, const PlaceOptions& options) {
  return place(problem, method_by_name(options.method), options);
}

void check(const PlaceOptions& options) { load(method_by_name(options.method), options); }

PlaceResult place(const Problem& problem, const Method& method, const PlaceOptions& options) {
  std::shared_ptr<const LearnedPolicy> policy = load(method, options);
  check_objective(problem, options);

  // Phase 1: a time that no placement can beat, by which the gap is measured, and what one device alone would take. A
  // search that reaches the bound is done. From here on the clock runs.
  const Budget budget = budget_of(options);
  const LowerBound bound = lower_bound(problem, budget.share(kBoundShare));
  const std::optional<Seconds> expected_bound = bound_on_expectation(problem, budget.share(kBoundShare));
  ExactObjective exact(problem);
  const std::optional<Seconds> single_device = best_single_device(exact, budget.share(kSingleDeviceShare));

  // Phase 2: the method looks for a placement that its objective likes, and it is simulated.
  const std::shared_ptr<Objective> objective = objective_of(problem, options);
  const Result found = place(*objective, method, method_options(options, budget, std::move(policy)), bound);
  const std::string graph = options.graph.empty() ? problem.graph().title() : options.graph;
  if (found.timeline.overflow) throw InfeasibleError(describe(graph, problem, *found.timeline.overflow));

  // Phase 3: what the placement is worth.
  PlaceResult result;
  result.run = simulation_result(outcome_of(problem, graph, found), problem, found.timeline);
  result.run.outcome.made.budget = describe_budget(options);
  result.run.outcome.objective = objective->name();
  if (result.run.outcome.expected) result.run.outcome.expected_bound = expected_bound;
  result.ops = problem.op_count();
  result.edges = problem.graph().edge_count();
  result.single_device = single_device;
  result.devices_used = used_devices(problem, found.placement);
  result.parallelism = parallelism(problem);
  result.placement = found.placement;
  result.run.outcome.made.fingerprint = fmt::format("{:016x}", problem.graph().fingerprint());
  return result;
}

}  // namespace doppler
