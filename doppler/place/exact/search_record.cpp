#include "doppler/place/exact/search_record.h"

namespace doppler {
namespace {
constexpr std::uint64_t kEvaluationsPerLook = 64;  // at the clock and the interrupt flag
}

Seconds SearchRecord::evaluate(const Placement& placement) {
  count();
  const Seconds makespan = objective_.fits_in_memory(placement) ? objective_.value(placement) : Costs::kNever;
  if (makespan < makespan_) {
    makespan_ = makespan;
    placement_ = placement;
    if (options_.on_progress) options_.on_progress({"exact", makespan_, evaluations_});
  }
  return makespan;
}

void SearchRecord::count(std::uint64_t evaluations) {
  const std::uint64_t before = evaluations_ / kEvaluationsPerLook;
  evaluations_ += evaluations;
  if (evaluations_ >= options_.budget.evaluations()) exhausted_ = true;
  if (evaluations_ / kEvaluationsPerLook > before && options_.budget.out_of_time()) exhausted_ = true;
}

}  // namespace doppler
