#include "doppler/budget.h"

#include <algorithm>
#include <time.h>
#include <utility>

namespace doppler {

Budget::Clock::time_point Budget::now() const {
  if (!of_processor_) return Clock::now();
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return Clock::time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

Budget Budget::ending_in(Seconds time) const {
  // A year is as good as for ever, and keeps the conversion below from overflowing.
  constexpr Seconds kYear = 365.0 * 86400.0;
  Budget budget = *this;
  budget.deadline_ =
      now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::clamp(time, 0.0, kYear)));
  return budget;
}

Budget Budget::for_time(Seconds time) { return Budget().ending_in(time); }

Budget Budget::for_processor_time(Seconds time) {
  Budget budget;
  budget.of_processor_ = true;
  return budget.ending_in(time);
}

Budget Budget::for_evaluations(std::uint64_t count) {
  Budget budget;
  budget.evaluations_ = count;
  return budget;
}

Budget Budget::share(double fraction) const {
  Budget part = has_deadline() ? ending_in(std::max(0.0, time_left()) * fraction) : *this;
  if (evaluations_ != kUnlimited)
    part.evaluations_ = static_cast<std::uint64_t>(static_cast<double>(evaluations_) * fraction);
  return part;
}

Budget Budget::at_most(std::uint64_t evaluations) const {
  Budget budget = *this;
  budget.evaluations_ = std::min(evaluations_, evaluations);
  return budget;
}

Budget Budget::less(std::uint64_t used) const {
  Budget rest = *this;
  if (evaluations_ != kUnlimited) rest.evaluations_ = std::max(evaluations_, used + 1) - used;
  return rest;
}

Budget Budget::shifted_by(Seconds time) const {
  Budget rest = *this;
  if (has_deadline())
    rest.deadline_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time));
  return rest;
}

Budget Budget::until(std::stop_token stop) const {
  Budget budget = *this;
  budget.stop_ = std::move(stop);
  return budget;
}

bool Budget::out_of_time() const { return interrupted() || (has_deadline() && now() >= deadline_); }

Seconds Budget::time_left() const {
  if (!has_deadline()) return std::numeric_limits<Seconds>::infinity();
  return std::chrono::duration<double>(deadline_ - now()).count();
}

}  // namespace doppler
