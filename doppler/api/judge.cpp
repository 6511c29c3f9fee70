#include "doppler/api/judge.h"

#include <numeric>

#include "doppler/base/error.h"
#include "doppler/graph/levels.h"
#include "doppler/objective.h"

namespace doppler {

namespace {

void add_expectation(Outcome& outcome, const Expectation& expectation, double jitter) {
  outcome.jitter = jitter;
  outcome.expected = expectation.mean;
  outcome.expected_error = expectation.error;
  outcome.p95 = expectation.p95;
}

}  // namespace

Outcome outcome_of(const Problem& problem, std::string graph, const LowerBound& bound) {
  Outcome outcome;
  outcome.made = provenance_of(problem, std::move(graph));
  outcome.made.lower_bound = bound.value;
  outcome.bound_kind = bound.kind;
  outcome.unitless = problem.graph().unitless();
  return outcome;
}

Outcome outcome_of(const Problem& problem, std::string graph, const Result& result) {
  Outcome outcome = outcome_of(problem, std::move(graph), result.bound);
  outcome.made.method = result.method;
  outcome.made.winner = result.winner;
  outcome.made.evaluations = result.evaluations;
  outcome.made.seed = result.seed;
  outcome.made.makespan = result.makespan;
  outcome.gap = result.gap;
  outcome.feasible = result.feasible;
  outcome.optimal = result.optimal;
  outcome.seconds = result.seconds;
  if (problem.machine().jitter().varies()) outcome.jitter = problem.machine().jitter().sigma;
  if (result.expected) add_expectation(outcome, *result.expected, problem.machine().jitter().sigma);
  return outcome;
}

void add_expectation(Outcome& outcome, const Problem& problem, const Placement& placement) {
  const Jitter& jitter = problem.machine().jitter();
  if (!jitter.varies()) return;
  add_expectation(outcome, expectation_of(problem, placement), jitter.sigma);
  outcome.expected_bound = bound_on_expectation(problem);
}

std::optional<Seconds> bound_on_expectation(const Problem& problem, const Budget& budget) {
  constexpr std::size_t kMostRows = 5'000;  // ops and edges; beyond, the bounds of the draws take long
  if (!problem.machine().jitter().varies() || problem.op_count() + problem.graph().edge_count() > kMostRows)
    return std::nullopt;
  const Seconds bound = expected_bound(problem, Draws{}.count, budget);
  return bound > 0 ? std::optional(bound) : std::nullopt;
}

std::string describe(const std::string& graph, const Problem& problem, const Timeline::Overflow& overflow) {
  return fmt::format("{}: op '{}' needs {} on device '{}'; required at most {}", graph,
                     problem.graph().name(overflow.op), format_bytes(overflow.needed),
                     problem.machine().device(overflow.device).name, format_bytes(overflow.capacity));
}

std::optional<Seconds> best_single_device(ExactObjective& objective, const Budget& budget) try {
  const Problem& problem = objective.problem();
  std::optional<Seconds> best;
  Watch watch(budget);
  std::vector<bool> class_done(problem.costs().device_classes(), false);
  for (DeviceId device = 0; device < problem.device_count(); ++device) {
    if (class_done[problem.costs().device_class(device)]) continue;
    if (!may_run_all(problem, device)) continue;
    class_done[problem.costs().device_class(device)] = true;
    Placement placement;
    placement.device_of_op.assign(problem.op_count(), device);
    watch.step(problem.op_count());
    if (!objective.fits_in_memory(placement, budget)) continue;
    const Seconds makespan = objective.value(placement);
    if (!best || makespan < *best) best = makespan;
  }
  return best;
} catch (const OutOfTime&) {
  return std::nullopt;
}

double parallelism(const Problem& problem) {
  const std::vector<Seconds>& times = problem.costs().fastest_times();
  const Seconds longest = levels(problem.graph(), times, {}).longest;
  return longest > 0 ? std::accumulate(times.begin(), times.end(), 0.0) / longest : 1;
}

bool may_run_all(const Problem& problem, DeviceId device) {
  for (OpId op = 0; op < problem.op_count(); ++op)
    if (!problem.allows(op, device)) return false;
  return true;
}

void check_allowed(const std::string& where, const Problem& problem, const Placement& placement) {
  const Graph& graph = problem.graph();
  const Machine& machine = problem.machine();
  check_size(where, placement, problem.op_count(), problem.device_count());
  for (OpId op = 0; op < problem.op_count(); ++op) {
    const DeviceId device = placement.device_of_op[op];
    if (!problem.allows(op, device))
      throw InputError(fmt::format(
          "{}: op '{}' is on device '{}', which cannot run it or its colocation group; required device '{}'", where,
          graph.name(op), machine.device(device).name, machine.device(problem.devices(op).front()).name));
    const OpId first = problem.unit(op).front();
    if (device != placement.device_of_op[first])
      throw InputError(fmt::format(
          "{}: ops '{}' and '{}' are on different devices; required the same, they share a colocation group", where,
          graph.name(first), graph.name(op)));
  }
}

}  // namespace doppler
