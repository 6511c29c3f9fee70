#include "doppler/place.h"

#include "doppler/api/judge.h"
#include "doppler/api/policies.h"
#include "doppler/base/error.h"
#include "doppler/report/export.h"

namespace doppler {
namespace {

MethodOptions method_options(const PlaceOptions& options, const LearnedPolicy* policy) {
  MethodOptions result;
  const Budget budget =
      options.evaluations ? Budget::for_evaluations(*options.evaluations) : Budget::for_time(options.time);
  result.budget = budget.with_interrupt(options.interrupted);
  result.seed = options.seed;
  result.threads = options.threads;
  result.published = options.published;
  result.policy = policy;
  result.on_progress = options.on_progress;
  return result;
}

// The policy that the options ask for. Throws InputError if the method makes nothing of it, or if it cannot be read.
std::unique_ptr<LearnedPolicy> load(const Method& method, const PlaceOptions& options) {
  if (options.train > 0 && method.family != Method::Family::learned)
    throw InputError(fmt::format("--train: found --method {}; required --method {}", method.name, learned_methods()));
  return load_policy(options.policy, {.samples = options.samples, .alone = options.alone, .train = options.train});
}

std::string describe_budget(const PlaceOptions& options) {
  if (options.train > 0) return fmt::format("{}s of training", options.train);
  return options.evaluations ? fmt::format("{} evaluations", *options.evaluations) : fmt::format("{}s", options.time);
}

// The makespan of everything on the best device that can run and hold it all; none may.
std::optional<Seconds> best_single_device(const Problem& problem) {
  std::optional<Seconds> best;
  ExactObjective objective(problem);
  std::vector<bool> class_done(problem.costs().device_classes(), false);
  for (DeviceId device = 0; device < problem.device_count(); ++device) {
    if (class_done[problem.costs().device_class(device)]) continue;
    if (!may_run_all(problem, device)) continue;
    class_done[problem.costs().device_class(device)] = true;
    Placement placement;
    placement.device_of_op.assign(problem.op_count(), device);
    const Timeline timeline = objective.simulate(placement);
    if (timeline.feasible() && (!best || timeline.makespan < *best)) best = timeline.makespan;
  }
  return best;
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
  const std::unique_ptr<LearnedPolicy> policy = load(method, options);
  if (options.objective != nullptr && options.objective->problem().shared_graph() != problem.shared_graph())
    throw InputError("objective: found one of another graph; required one of the problem that is placed");

  // Phase 1: a time that no placement can beat. A search that reaches it is done, and the gap is measured by it.
  const LowerBound bound = lower_bound(problem);

  // Phase 2: the method looks for a placement that its objective likes, within its budget.
  ExactObjective exact(problem);
  Objective& objective = options.objective != nullptr ? *options.objective : exact;
  const Result found = place(objective, method, method_options(options, policy.get()), bound);
  const std::string graph = options.graph.empty() ? problem.graph().title() : options.graph;
  if (found.timeline.overflow) throw InfeasibleError(describe(graph, problem, *found.timeline.overflow));

  // Phase 3: what the placement is worth, and what one device alone would take.
  PlaceResult result;
  result.run = simulation_result(outcome_of(problem, graph, found), problem, found.timeline);
  result.run.outcome.made.budget = describe_budget(options);
  result.ops = problem.op_count();
  result.edges = problem.graph().edge_count();
  result.single_device = best_single_device(problem);
  result.placement = found.placement;
  return result;
}

}  // namespace doppler
