#include "doppler/place/search/incumbent.h"

namespace doppler {

void Incumbent::consider(Placement placement) {
  const Seconds makespan = simulator_.makespan(placement);
  const bool fits = simulator_.fits_in_memory(placement);
  const bool first = best_.evaluations++ == 0;
  if (!first && (fits != best_fits_ ? best_fits_ : makespan >= best_makespan_)) return;
  best_.placement = std::move(placement);
  best_fits_ = fits;
  best_makespan_ = makespan;
  if (options_->on_progress) options_->on_progress({method_, best_makespan_, best_.evaluations});
}

bool Incumbent::exhausted() const {
  return best_.evaluations > 0 &&
         (best_.evaluations >= options_->budget.evaluations() || options_->budget.out_of_time());
}

Proposal Incumbent::finish() && { return best_fits_ ? std::move(best_) : fit_in_memory(*problem_, std::move(best_)); }

}  // namespace doppler
