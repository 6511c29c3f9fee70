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

// Whether the trees cover the rules, and the graph is small enough to try.
bool may_search(const Problem& problem) {
  return problem.rules().noise == 0 && !problem.rules().bulk_synchronous && problem.op_count() <= kMostOps;
}

bool ranked(const Problem& problem) {
  return problem.rules().discipline == Discipline::priority ||
         problem.rules().discipline == Discipline::ordered;
}

// Moves a random cluster to a random device; or exchanges two clusters; or moves one to where an input comes
// from.
void move_randomly(const Problem& problem, const ClusterMembers& clusters, Rng& rng, Placement& placement) {
  const Graph& graph = problem.graph();
  const auto pick = [&](auto list) { return list[rng.below(static_cast<std::uint32_t>(list.size()))]; };
  const auto move = [&](OpId op, DeviceId device) {
    for (const OpId member : clusters.of(op))
      if (!problem.allows(member, device)) return;
    for (const OpId member : clusters.of(op)) placement.device_of_op[member] = device;
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
      if (!graph.inputs(op).empty()) move(op, placement.device_of_op[graph.producer(pick(graph.inputs(op)))]);
  }
}

// Late-acceptance hill climbing (Burke and Bykov 2017): a change stays if it is no worse than the placement
// was kMemory steps ago.
void improve_locally(const Problem& problem, std::span<const std::uint32_t> cluster, Seconds bound, Rng& rng,
                     SearchRecord& record) {
  const OpId n = problem.op_count();
  const ClusterMembers clusters(cluster);
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
      move_randomly(problem, clusters, rng, next);
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
}

// Local search and what follows from its result, in turns: whatever is better than the best placement has the
// clusters that follow, so they may move as one, which finds better placements. Ends when nothing improves,
// with the consequences of the best.
Consequences improve_and_infer(const Problem& problem, std::uint64_t seed, Seconds bound,
                               SearchRecord& record) {
  const Relaxation relaxation = relax(problem);
  const Relaxation reversed = relaxation.reversed();
  Consequences facts;  // without an assumption
  facts.cluster = relaxation.cluster;
  facts.head.assign(problem.op_count(), 0.0);
  facts.tail = facts.head;
  const bool infers = may_search(problem);
  if (infers) {
    HeadFinder(relaxation, problem.op_count()).raise(facts.head);
    HeadFinder(reversed, problem.op_count()).raise(facts.tail);
  }
  Rng rng(seed);
  Consequences known = facts;
  while (record.makespan() < Costs::kNever && !record.beats(bound) && !known.contradiction) {
    const Seconds before = record.makespan();
    const std::vector<std::uint32_t> clusters = known.cluster;
    improve_locally(problem, clusters, bound, rng, record);
    if (infers) known = assume_makespan(relaxation, facts.head, facts.tail, record.next_better());
    if (record.exhausted() || (record.makespan() == before && known.cluster == clusters)) break;
  }
  return known;
}

Seconds search(const Problem& problem, const Consequences& known, SearchRecord& record) {
  if (ranked(problem) ||
      (problem.rules().discipline == Discipline::fifo && problem.rules().links == Links::free))
    return search_schedules(problem, known, record);
  return search_assignments(problem, known, record);
}

}  // namespace

Proposal exact(const Problem& problem, const MethodOptions& options) {
  const bool bounds_hold = problem.rules().noise == 0;
  const Seconds bound = bounds_hold ? lower_bound(problem).value : 0;
  SearchRecord record(problem, options);
  find_first_placement(problem, options, bound, record);
  const Consequences known = improve_and_infer(problem, options.seed, bound, record);

  Proposal proposal;
  if (record.beats(bound) || known.contradiction) {
    proposal.proven_bound = record.makespan();
  } else if (may_search(problem)) {
    proposal.proven_bound = std::max(bound, search(problem, known, record));
  } else if (bounds_hold) {
    proposal.proven_bound = bound;
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
