#include "doppler/place/exact/exact.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/bounds/communication_bound.h"
#include "doppler/place/exact/assignment_tree.h"
#include "doppler/place/exact/schedule_tree.h"
#include "doppler/place/list/simple_placements.h"
#include "doppler/place/search/portfolio.h"

namespace doppler {
namespace {

constexpr OpId kMostOps = 400;  // larger graphs are not searched: a proof is out of reach
// What the first placement may cost, and what is spent on making it better; the rest is for the proof.
constexpr double kStartShare = 0.2;
constexpr std::uint64_t kStartPerOp = 500;
constexpr int kRounds = 4;
constexpr std::uint64_t kMovesPerOp = 1'000;  // in a round
constexpr std::uint64_t kMostMoves = 100'000;
constexpr std::size_t kMemory = 200;  // of late acceptance, in moves

// Whether the trees cover the rules, and the graph is small enough to try.
bool may_search(const Problem& problem, const Objective& objective) {
  return objective.exact() && !problem.rules().bulk_synchronous && problem.op_count() <= kMostOps;
}

bool ranked(const Problem& problem) {
  return problem.rules().discipline == Discipline::priority || problem.rules().discipline == Discipline::ordered;
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
      if (!graph.inputs(op).empty()) move(op, placement.device_of_op[graph.producer(pick(graph.inputs(op)))]);
  }
}

// Late-acceptance hill climbing (Burke and Bykov 2017): a change stays if it is no worse than the placement
// was kMemory steps ago. Exchanges balance devices to the last op, where annealing stops just short of it.
void balance(const Problem& problem, Placement current, Seconds bound, Rng& rng, SearchRecord& record) {
  const OpId n = problem.op_count();
  if (ranked(problem) && current.priority.empty()) current.priority = default_priority(problem.costs());
  Seconds value = record.evaluate(current);
  std::vector<Seconds> earlier(kMemory, value);
  const std::uint64_t moves = std::min(kMovesPerOp * n, kMostMoves);
  for (std::uint64_t i = 0; i < moves && !record.beats(bound) && !record.exhausted(); ++i) {
    Placement next = current;
    if (ranked(problem) && rng.below(2) == 0) {
      std::swap(next.priority[rng.below(n)], next.priority[rng.below(n)]);
    } else {
      move_randomly(problem, rng, next);
    }
    const Seconds next_value = record.evaluate(next);
    if (next_value <= value || next_value <= earlier[i % kMemory]) {
      value = next_value;
      current = std::move(next);
    }
    earlier[i % kMemory] = value;
  }
}

void find_first_placement(const Problem& problem, Objective& objective, const MethodOptions& options, Seconds bound,
                          SearchRecord& record) {
  MethodOptions start = options;
  start.known_bound = bound;
  start.on_progress = nullptr;
  start.budget = options.budget.share(kStartShare).at_most(kStartPerOp * problem.op_count());
  try {
    Proposal proposal = portfolio(problem, objective, start);
    proposal.placement.cause_of_op.clear();
    record.count(proposal.evaluations);
    record.evaluate(proposal.placement);
  } catch (const InfeasibleError&) {
    return;  // heuristics found nothing that fits in memory; the search may
  } catch (const OutOfTime&) {
    if (!may_search(problem, objective)) throw;
    return;
  }
  if (record.empty()) return;
  const Placement start_placement = record.placement();
  Rng rng(options.seed);
  for (int round = 0; round < kRounds && !record.beats(bound) && !record.exhausted(); ++round)
    balance(problem, start_placement, bound, rng, record);
}

// What holds for every execution that is better than the record.
Consequences infer(const Problem& problem, const SearchRecord& record) {
  const Relaxation relaxation = relax(problem);
  const Relaxation reversed = relaxation.reversed();
  Consequences known;
  known.cluster = relaxation.cluster;
  known.head.assign(problem.op_count(), 0.0);
  known.tail = known.head;
  HeadFinder(relaxation, problem.op_count()).raise(known.head);
  HeadFinder(reversed, problem.op_count()).raise(known.tail);
  if (record.empty()) return known;
  return assume_makespan(relaxation, known.head, known.tail, record.next_better());
}

// Returns a proven bound: the record's makespan if nothing is left to search.
Seconds search(const Problem& problem, SearchRecord& record) {
  const Consequences known = infer(problem, record);
  if (known.contradiction) return record.makespan();
  if (ranked(problem) || (problem.rules().discipline == Discipline::fifo && are_delays(problem.rules().links)))
    return search_schedules(problem, known, record);
  return search_assignments(problem, known, record);
}

}  // namespace

Proposal exact(const Problem& problem, Objective& objective, const MethodOptions& options) {
  const bool bounds_hold = objective.exact();
  const Seconds bound = !bounds_hold              ? 0
                        : options.known_bound > 0 ? options.known_bound
                                                  : lower_bound(problem, options.budget).value;
  SearchRecord record(objective, options);
  find_first_placement(problem, objective, options, bound, record);

  Proposal proposal;
  if (bounds_hold) proposal.proven_bound = bound;
  const bool searched = !record.beats(bound) && may_search(problem, objective);
  if (record.beats(bound)) {
    proposal.proven_bound = record.makespan();
  } else if (searched) {
    proposal.proven_bound = std::max(bound, search(problem, record));
  }
  if (record.empty())
    throw InfeasibleError(fmt::format(
        "exact: {} placements of '{}' were simulated and none fits in memory; {}", record.evaluations(),
        problem.graph().title(), searched && !record.exhausted() ? "there is none" : "the search was not finished"));
  proposal.placement = record.placement();
  for (OpId op = 0; op < problem.op_count(); ++op)
    proposal.placement.cause_of_op.push_back(cause_of(problem, op, Cause::search));
  proposal.evaluations = record.evaluations();
  return proposal;
}

}  // namespace doppler
