// Lower bounds on the makespan T. Every kind is proved from the facts listed in relaxation.h:
//
// work: seconds of a slot have a price, and the whole machine costs no more than T; see work_bound.cpp.
//
// critical path: a chain of ops runs one after the other, each at its fastest.
//
// communication: head(v) + work(v) + tail(v) of the op with the largest sum; see communication_bound.cpp.
//
// interval: all ops with head >= r and tail >= q run between r and T - q, so T >= r + work / slots + q. The
// best r and q are found by preemptive_bound over all ops, in O(n log n) (after Fernandez and Bussell 1973).
//
// contradiction: assume T, propagate, contradict; see destructive_bound.cpp.
#include "doppler/bounds.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/error.h"
#include "doppler/bounds/communication_bound.h"
#include "doppler/bounds/destructive_bound.h"
#include "doppler/bounds/work_bound.h"
#include "doppler/machine/jitter.h"

namespace doppler {
namespace {

// The time of a bound grows with these. They keep it near a tenth of a second for the published graphs, and
// near a second for 10^5 ops.
constexpr std::size_t kAncestorVisits = 1'600'000;  // per direction: op count times ancestors looked at
constexpr std::size_t kVisitsPerDraw = kAncestorVisits / 16;
constexpr std::size_t kFewestAncestors = 16;  // fewer are not worth the trouble
constexpr std::size_t kDestructiveOps = 500;  // in larger graphs no contradiction is tried
constexpr int kDestructiveAttempts = 16;
// Taken off where times are not integers: a simulation may add the same times in another order.
constexpr double kRounding = 1e-12;

void improve(LowerBound& best, Seconds value, LowerBound::Kind kind) {
  if (value > best.value) best = {value, kind};
}

}  // namespace

std::string_view to_string(LowerBound::Kind kind) {
  switch (kind) {
    case LowerBound::Kind::work:
      return "work";
    case LowerBound::Kind::critical_path:
      return "critical_path";
    case LowerBound::Kind::communication:
      return "communication";
    case LowerBound::Kind::interval:
      return "interval";
    case LowerBound::Kind::search:
      return "search";
    case LowerBound::Kind::contradiction:
      return "contradiction";
  }
  throw InternalError("unknown kind of lower bound");
}

bool integer_times(const Problem& problem) {
  constexpr double kExact = 0x1.0p50;  // with room for a factor of slots
  const Costs& costs = problem.costs();
  double total = 0;
  const auto add = [&](Seconds time) {
    total += time;
    return time == std::floor(time) && total < kExact;
  };
  AllowedClasses classes(problem);
  for (OpId op = 0; op < problem.op_count(); ++op)
    for (const std::uint32_t device_class : classes.of(op))
      if (!add(costs.class_time(op, device_class))) return false;
  for (TensorId tensor = 0; tensor < problem.graph().tensor_count(); ++tensor)
    for (std::size_t link_class = 0; link_class < costs.link_classes(); ++link_class)
      if (!add(costs.class_transfer_time(tensor, link_class))) return false;
  return true;
}

namespace {

// Raises `best` by one kind after the other. Throws OutOfTime.
void raise_bound(const Problem& problem, const Budget& budget, std::size_t ancestor_visits, bool destructive,
                 LowerBound& best) {
  Watch watch(budget);
  const std::size_t n = problem.op_count();
  const auto look = [&] { watch.step(n); };  // before what takes long for many ops
  look();
  improve(best, work_bound(problem, budget), LowerBound::Kind::work);
  look();
  const Relaxation relaxation = relax(problem);
  look();
  const Relaxation reversed = relaxation.reversed();
  std::vector<Seconds> head(n, 0.0), tail(n, 0.0);
  const auto raise = [&](std::size_t ancestor_limit, LowerBound::Kind kind) {
    HeadFinder(relaxation, ancestor_limit, budget).raise(head);
    HeadFinder(reversed, ancestor_limit, budget).raise(tail);
    for (OpId op = 0; op < n; ++op) improve(best, head[op] + relaxation.work[op] + tail[op], kind);
  };
  raise(0, LowerBound::Kind::critical_path);
  if (ancestor_visits / n >= kFewestAncestors) raise(ancestor_visits / n, LowerBound::Kind::communication);

  look();
  std::vector<HeadTailWork> tasks(n);
  for (OpId op = 0; op < n; ++op) tasks[op] = {head[op], relaxation.work[op], tail[op]};
  improve(best, preemptive_bound(tasks, relaxation.total_slots), LowerBound::Kind::interval);

  if (destructive && n <= kDestructiveOps)
    improve(best, destructive_bound(relaxation, head, tail, best.value, kDestructiveAttempts),
            LowerBound::Kind::contradiction);
}

}  // namespace

LowerBound lower_bound(const Problem& problem, const Budget& budget) {
  LowerBound best;
  try {
    raise_bound(problem, budget, kAncestorVisits, true, best);
  } catch (const OutOfTime&) {
    // What was found holds without the rest.
  }
  best.value = integer_times(problem) ? std::ceil(best.value) : best.value * (1 - kRounding);
  return best;
}

Seconds expected_bound(const Problem& problem, std::size_t draws, const Budget& budget) {
  Seconds sum = 0;
  try {
    for (std::size_t draw = 0; draw < draws; ++draw) {
      LowerBound bound;
      raise_bound(problem.drawn(JitterDraw::number(draw, problem.machine().jitter(), problem.rules().seed, 0)), budget,
                  kVisitsPerDraw, false, bound);
      sum += bound.value * (1 - kRounding);
    }
  } catch (const OutOfTime&) {
    return 0;
  }
  return draws > 0 ? sum / static_cast<double>(draws) : 0;
}

}  // namespace doppler
