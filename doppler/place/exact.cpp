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

constexpr OpId kMostOps = 400;                // larger graphs are not searched: a proof is out of reach
constexpr std::uint64_t kMovesPerOp = 2'000;  // of the local search: enough for graphs that can be searched
constexpr std::uint64_t kMostMoves = 200'000;
constexpr std::size_t kMemory = 200;  // of the local search, in moves

bool ranked(const Problem& problem) {
  return problem.rules().discipline == Discipline::priority ||
         problem.rules().discipline == Discipline::ordered;
}

// Moves a random unit to a random device; or exchanges two units; or moves one to where an input comes from.
void move_randomly(const Problem& problem, Rng& rng, Placement& placement) {
  const Graph& graph = problem.graph();
  const auto pick = [&](auto list) { return list[rng.below(static_cast<std::uint32_t>(list.size()))]; };
  const auto move = [&](OpId op, DeviceId device) {
    if (!problem.allows(op, device)) return;
    for (const OpId member : problem.unit(op)) placement.device_of_op[member] = device;
  };
  const OpId op = rng.below(problem.op_count());
  const DeviceId device = placement.device_of_op[op];
  switch (rng.below(3)) {
    case 0:
      move(op, pick(problem.devices(op)));
      break;
    case 1: {
      const OpId other = rng.below(problem.op_count());
      move(op, placement.device_of_op[other]);
      move(other, device);
      break;
    }
    default:
      if (!graph.inputs(op).empty())
        move(op, placement.device_of_op[graph.producer(pick(graph.inputs(op)))]);
  }
}

// Late-acceptance hill climbing (Burke and Bykov 2017): a change stays if it is no worse than the placement
// was kMemory steps ago.
void improve_locally(const Problem& problem, std::uint64_t seed, Seconds bound, SearchRecord& record) {
  const OpId n = problem.op_count();
  Rng rng(seed);
  Placement current = record.placement();
  if (ranked(problem) && current.priority.empty()) current.priority = default_priority(problem.costs());
  Seconds value = record.simulate(current);
  std::vector<Seconds> earlier(kMemory, value);
  const std::uint64_t moves = std::min(kMovesPerOp * n, kMostMoves);
  for (std::uint64_t i = 0; i < moves && !record.beats(bound) && !record.exhausted(); ++i) {
    Placement next = current;
    if (ranked(problem) && rng.below(2) == 0) {
      std::swap(next.priority[rng.below(n)], next.priority[rng.below(n)]);
    } else {
      move_randomly(problem, rng, next);
    }
    const Seconds next_value = record.simulate(next);
    if (next_value <= value || next_value <= earlier[i % kMemory]) {
      value = next_value;
      current = std::move(next);
    }
    earlier[i % kMemory] = value;
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
