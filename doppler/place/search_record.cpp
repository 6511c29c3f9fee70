#include "doppler/place/search_record.h"

namespace doppler {
namespace {
constexpr std::uint64_t kEvaluationsPerLook = 64;  // at the clock and the interrupt flag
}

Seconds SearchRecord::simulate(const Placement& placement) {
  count();
  Seconds makespan = Costs::kNever;
  if (problem_.memory_limited()) {
    const Timeline timeline = simulator_.simulate(placement);
    if (timeline.feasible()) makespan = timeline.makespan;
  } else {
    makespan = simulator_.makespan(placement);
  }
  if (makespan < makespan_) {
    makespan_ = makespan;
    placement_ = placement;
    if (options_.on_progress) options_.on_progress({"exact", makespan_, evaluations_});
  }
  return makespan;
}

void SearchRecord::count() {
  ++evaluations_;
  if (evaluations_ >= options_.budget.evaluations()) exhausted_ = true;
  if (evaluations_ % kEvaluationsPerLook == 0 && options_.budget.out_of_time()) exhausted_ = true;
}

}  // namespace doppler
