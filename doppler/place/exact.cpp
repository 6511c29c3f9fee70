#include "doppler/place/exact.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/place/assignment_tree.h"
#include "doppler/place/etf.h"
#include "doppler/place/heft.h"
#include "doppler/place/schedule_tree.h"
#include "doppler/place/single.h"
#include "doppler/sim/communication_bound.h"

namespace doppler {
namespace {

constexpr OpId kMostOps = 400;              // larger graphs are not searched: a proof is out of reach
constexpr std::uint64_t kMovesPerOp = 500;  // of the local search: enough for graphs that can be searched
constexpr std::uint64_t kMostMoves = 50'000;

bool ranked(const Problem& problem) {
  return problem.rules().discipline == Discipline::priority ||
         problem.rules().discipline == Discipline::ordered;
}

// Random moves of a unit, or exchanges of two ranks, that make nothing worse.
void improve_locally(const Problem& problem, std::uint64_t seed, Seconds bound, SearchRecord& record) {
  const OpId n = problem.op_count();
  Rng rng(seed);
  Placement current = record.placement();
  Seconds value = record.makespan();
  if (ranked(problem) && current.priority.empty()) current.priority = default_priority(problem.costs());
  const std::uint64_t moves = std::min(kMovesPerOp * n, kMostMoves);
  for (std::uint64_t i = 0; i < moves && !record.beats(bound) && !record.exhausted(); ++i) {
    Placement next = current;
    if (ranked(problem) && rng.below(2) == 0) {
      std::swap(next.priority[rng.below(n)], next.priority[rng.below(n)]);
    } else {
      const OpId op = rng.below(n);
      const auto devices = problem.devices(op);
      const DeviceId device = devices[rng.below(static_cast<std::uint32_t>(devices.size()))];
      for (const OpId member : problem.unit(op)) next.device_of_op[member] = device;
    }
    const Seconds next_value = record.simulate(next);
    if (next_value > value) continue;
    value = next_value;
    current = std::move(next);
  }
}

void find_first_placement(const Problem& problem, const MethodOptions& options, Seconds bound,
                          SearchRecord& record) {
  MethodOptions start = options;
  start.on_progress = nullptr;
  for (const auto method : {heft, etf, single}) {
    if (record.beats(bound)) return;
    try {
      Placement placement = method(problem, start).placement;
      placement.cause_of_op.clear();
      record.simulate(placement);
    } catch (const InfeasibleError&) {
      // Its repair found nothing that fits in memory; the search below may.
    }
  }
  if (record.makespan() < Costs::kNever) improve_locally(problem, options.seed, bound, record);
}

Seconds search(const Problem& problem, SearchRecord& record) {
  const Relaxation relaxation = relax(problem);
  std::vector<Seconds> head(problem.op_count(), 0.0), tail(problem.op_count(), 0.0);
  HeadFinder(relaxation, problem.op_count()).raise(head);
  const Relaxation reversed = relaxation.reversed();
  HeadFinder(reversed, problem.op_count()).raise(tail);
  if (ranked(problem) ||
      (problem.rules().discipline == Discipline::fifo && problem.rules().links == Links::free))
    return search_schedules(problem, head, tail, record);
  return search_assignments(problem, tail, record);
}

}  // namespace

Proposal exact(const Problem& problem, const MethodOptions& options) {
  const Rules& rules = problem.rules();
  const bool bounds_hold = rules.noise == 0;
  const Seconds bound = bounds_hold ? lower_bound(problem).value : 0;
  SearchRecord record(problem, options);
  find_first_placement(problem, options, bound, record);

  Proposal proposal;
  if (bounds_hold) proposal.proven_bound = bound;
  if (record.beats(bound)) {
    proposal.proven_bound = record.makespan();
  } else if (bounds_hold && !rules.bulk_synchronous && problem.op_count() <= kMostOps) {
    proposal.proven_bound = std::max(bound, search(problem, record));
  }
  if (record.makespan() == Costs::kNever)
    throw InfeasibleError(fmt::format(
        "exact: {} placements of '{}' were simulated and none fits in memory; {}", record.evaluations(),
        problem.graph().title(), record.exhausted() ? "the search was not finished" : "there is none"));
  proposal.placement = record.placement();
  proposal.placement.cause_of_op.assign(problem.op_count(), Cause::search);
  proposal.evaluations = record.evaluations();
  return proposal;
}

}  // namespace doppler
