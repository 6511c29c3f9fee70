// Lower bounds on the makespan. Every kind is proved from the facts listed in relaxation.h; the mathematics
// of each stands before its code:
//   work           work_bound.cpp: seconds of a slot have a price, and the whole machine costs no more than
//   T. critical path  a chain of ops runs one after the other, each at its fastest. communication
//   communication_bound.cpp: head(v) + work(v) + tail(v) for the op with the largest sum. interval       all
//   ops with head >= r and tail >= q run between r and T - q, so T >= r + work / slots + q. The best
//                  r and q are found by preemptive_bound over all ops, in O(n log n) (Fernandez and Bussell
//                  1973).
//   contradiction  destructive_bound.cpp: assume T, propagate, contradict.
#include "doppler/sim/bounds.h"

#include <algorithm>
#include <cmath>

#include "doppler/base/error.h"
#include "doppler/sim/communication_bound.h"
#include "doppler/sim/destructive_bound.h"
#include "doppler/sim/work_bound.h"

namespace doppler {
namespace {

// The time of a bound grows with these; on one core of a current computer each stands for about a quarter
// second.
constexpr std::size_t kAncestorVisits = 4'000'000;  // per direction: op count times ancestors looked at
constexpr std::size_t kFewestAncestors = 16;        // fewer are not worth the trouble
constexpr std::size_t kDestructiveVisits =
    250'000;  // op count squared, above which no contradiction is tried
constexpr int kDestructiveAttempts = 16;

void improve(LowerBound& best, Seconds value, LowerBound::Kind kind) {
  if (value > best.value) best = {value, kind};
}

// True if all times are integers, so that the makespan is one too, and sums of them are exact.
bool integral(const Problem& problem) {
  constexpr double kExact = 0x1.0p50;  // with room for a factor of slots
  const Costs& costs = problem.costs();
  double total = 0;
  const auto add = [&](Seconds time) {
    total += time;
    return time == std::floor(time) && total < kExact;
  };
  for (OpId op = 0; op < problem.op_count(); ++op)
    for (const DeviceId device : problem.devices(op))
      if (!add(costs.op_time(op, device))) return false;
  for (TensorId tensor = 0; tensor < problem.graph().tensor_count(); ++tensor)
    for (DeviceId src = 0; src < problem.device_count(); ++src)
      for (DeviceId dst = 0; dst < problem.device_count(); ++dst)
        if (!add(costs.transfer_time(tensor, src, dst))) return false;
  return true;
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
    case LowerBound::Kind::contradiction:
      return "contradiction";
  }
  throw InternalError("unknown kind of lower bound");
}

LowerBound lower_bound(const Problem& problem) {
  const Relaxation relaxation = relax(problem);
  const Relaxation reversed = relaxation.reversed();
  const std::size_t n = relaxation.op_count();
  LowerBound best;
  improve(best, work_bound(problem), LowerBound::Kind::work);

  std::vector<Seconds> head(n, 0.0), tail(n, 0.0);
  const auto raise = [&](std::size_t ancestor_limit, LowerBound::Kind kind) {
    HeadFinder(relaxation, ancestor_limit).raise(head);
    HeadFinder(reversed, ancestor_limit).raise(tail);
    for (OpId op = 0; op < n; ++op) improve(best, head[op] + relaxation.work[op] + tail[op], kind);
  };
  raise(0, LowerBound::Kind::critical_path);
  if (kAncestorVisits / n >= kFewestAncestors) raise(kAncestorVisits / n, LowerBound::Kind::communication);

  std::vector<Task> tasks(n);
  for (OpId op = 0; op < n; ++op) tasks[op] = {head[op], relaxation.work[op], tail[op]};
  improve(best, preemptive_bound(tasks, relaxation.total_slots), LowerBound::Kind::interval);

  if (n * n <= kDestructiveVisits)
    improve(best, destructive_bound(relaxation, head, tail, best.value, kDestructiveAttempts),
            LowerBound::Kind::contradiction);
  if (integral(problem)) best.value = std::ceil(best.value);
  return best;
}

}  // namespace doppler
