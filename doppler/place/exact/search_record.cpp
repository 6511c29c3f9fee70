#include "doppler/place/exact/search_record.h"

namespace doppler {
Seconds SearchRecord::evaluate(const Placement& placement) {
  count();
  Seconds makespan = Costs::kNever;
  try {
    if (objective_.fits_in_memory(placement, options_.budget)) makespan = objective_.value(placement);
  } catch (const OutOfTime&) {
    exhausted_ = true;
  }
  if (makespan < best_.value) {
    best_ = {placement, makespan};
    if (options_.on_progress) options_.on_progress({"exact", makespan, evaluations_});
  }
  return makespan;
}

void SearchRecord::count(std::uint64_t evaluations) {
  evaluations_ += evaluations;
  if (evaluations_ >= options_.budget.evaluations()) exhausted_ = true;
  if (evaluations_ < next_look_) return;
  next_look_ = evaluations_ + evaluations_per_look_;
  if (options_.budget.out_of_time()) exhausted_ = true;
}

}  // namespace doppler
