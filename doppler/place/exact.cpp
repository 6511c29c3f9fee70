#include "doppler/place/exact.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/place/assignment_tree.h"
#include "doppler/place/portfolio.h"
#include "doppler/place/schedule_tree.h"
#include "doppler/sim/communication_bound.h"

namespace doppler {
namespace {

constexpr OpId kMostOps = 400;  // larger graphs are not searched: a proof is out of reach
// What the first placement may cost; the rest is for the proof.
constexpr double kStartShare = 0.3;
constexpr std::uint64_t kStartPerOp = 2'000;
constexpr std::uint64_t kMostStart = 200'000;

// Whether the trees cover the rules, and the graph is small enough to try.
bool may_search(const Problem& problem) {
  return problem.rules().noise == 0 && !problem.rules().bulk_synchronous && problem.op_count() <= kMostOps;
}

bool ranked(const Problem& problem) {
  return problem.rules().discipline == Discipline::priority ||
         problem.rules().discipline == Discipline::ordered;
}

void find_first_placement(const Problem& problem, const MethodOptions& options, Seconds bound,
                          SearchRecord& record) {
  MethodOptions start = options;
  start.known_bound = bound;
  start.on_progress = nullptr;
  start.budget =
      options.budget.share(kStartShare).at_most(std::min(kStartPerOp * problem.op_count(), kMostStart));
  try {
    Proposal proposal = portfolio(problem, start);
    proposal.placement.cause_of_op.clear();
    record.count(proposal.evaluations);
    record.simulate(proposal.placement);
  } catch (const InfeasibleError&) {
    // Heuristics found nothing that fits in memory; the search may.
  }
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
  if (record.makespan() == Costs::kNever) return known;
  return assume_makespan(relaxation, known.head, known.tail, record.next_better());
}

// Returns a proven bound: the record's makespan if nothing is left to search.
Seconds search(const Problem& problem, SearchRecord& record) {
  const Consequences known = infer(problem, record);
  if (known.contradiction) return record.makespan();
  if (ranked(problem) ||
      (problem.rules().discipline == Discipline::fifo && problem.rules().links == Links::free))
    return search_schedules(problem, known, record);
  return search_assignments(problem, known, record);
}

}  // namespace

Proposal exact(const Problem& problem, const MethodOptions& options) {
  const bool bounds_hold = problem.rules().noise == 0;
  const Seconds bound = !bounds_hold              ? 0
                        : options.known_bound > 0 ? options.known_bound
                                                  : lower_bound(problem).value;
  SearchRecord record(problem, options);
  find_first_placement(problem, options, bound, record);

  Proposal proposal;
  if (bounds_hold) proposal.proven_bound = bound;
  if (record.beats(bound)) {
    proposal.proven_bound = record.makespan();
  } else if (may_search(problem)) {
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
