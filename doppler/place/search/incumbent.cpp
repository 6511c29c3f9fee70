#include "doppler/place/search/incumbent.h"

namespace doppler {

void Incumbent::consider(Placement placement, std::string_view winner) {
  const Seconds value = objective_.value(placement);
  const bool fits = objective_.fits_in_memory(placement, options_.budget);
  consider(std::move(placement), winner, value, fits);
}

void Incumbent::consider(Proposal proposal, std::string_view winner) {
  evaluations_ += proposal.evaluations;
  const Seconds value = objective_.value(proposal.placement);
  consider(std::move(proposal.placement), winner, value, true);
}

void Incumbent::consider(Placement placement, std::string_view winner, Seconds value, bool fits) {
  ++evaluations_;
  const bool first = considered_++ == 0;
  if (!first && (fits != fits_ ? fits_ : value >= best_.value)) return;
  best_ = {std::move(placement), value, std::string(winner)};
  fits_ = fits;
  if (options_.on_progress) options_.on_progress({method_, value, evaluations_});
}

bool Incumbent::exhausted() const {
  return considered_ > 0 && (evaluations_ >= options_.budget.evaluations() || options_.budget.out_of_time());
}

Proposal Incumbent::finish() && {
  Proposal found{std::move(best_.placement), evaluations_, std::move(best_.winner)};
  return fits_ ? std::move(found) : fit_in_memory(objective_, std::move(found), options_.budget);
}

}  // namespace doppler
