#include "doppler/place/search/incumbent.h"

namespace doppler {

void Incumbent::consider(Placement placement, std::string_view winner) {
  const Seconds value = objective_.value(placement);
  const bool fits = objective_.fits_in_memory(placement, options_.budget);
  consider(std::move(placement), winner, value, fits);
}

void Incumbent::consider(Proposal proposal, std::string_view winner) {
  best_.evaluations += proposal.evaluations;
  const Seconds value = objective_.value(proposal.placement);
  consider(std::move(proposal.placement), winner, value, true);
}

void Incumbent::consider(Placement placement, std::string_view winner, Seconds value, bool fits) {
  ++best_.evaluations;
  const bool first = considered_++ == 0;
  if (!first && (fits != fits_ ? fits_ : value >= value_)) return;
  best_.placement = std::move(placement);
  best_.winner = winner;
  fits_ = fits;
  value_ = value;
  if (options_.on_progress) options_.on_progress({method_, value_, best_.evaluations});
}

bool Incumbent::exhausted() const {
  return considered_ > 0 && (best_.evaluations >= options_.budget.evaluations() || options_.budget.out_of_time());
}

Proposal Incumbent::finish() && {
  return fits_ ? std::move(best_) : fit_in_memory(objective_, std::move(best_), options_.budget);
}

}  // namespace doppler
