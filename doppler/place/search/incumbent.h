#pragma once

#include "doppler/place/memory.h"
#include "doppler/place/search/candidate.h"

namespace doppler {

// The best of several placements by an objective; the first of equals. One that fits in memory is better than any that
// does not.
class Incumbent {
 public:
  // Both must outlive it. `method` is who the progress is reported for.
  Incumbent(std::string_view method, Objective& objective, const MethodOptions& options)
      : method_(method), objective_(objective), options_(options) {}

  // `winner` is who made the placement, where that is not the method itself.
  void consider(Placement placement, std::string_view winner = {});
  // The same for what another method found, which therefore fits in memory, with the evaluations that it took.
  void consider(Proposal proposal, std::string_view winner);

  // Considers the placement that find() returns, unless time is up first and there is an answer already.
  template <typename Find>
  void attempt(Find find) {
    try {
      consider(find());
    } catch (const OutOfTime&) {
      if (empty()) throw;
    }
  }
  // Counts one more evaluation, of a placement that is known to be as good as one before.
  void consider_equal() { ++evaluations_; }

  // True when the budget is used up; never before one placement was considered, so there is always an answer.
  bool exhausted() const;
  bool empty() const { return considered_ == 0; }
  Seconds value() const { return best_.value; }
  // The best, made to fit in memory. Throws InfeasibleError if it cannot.
  Proposal finish() &&;

 private:
  void consider(Placement placement, std::string_view winner, Seconds value, bool fits);

  std::string_view method_;
  Objective& objective_;
  const MethodOptions& options_;
  Candidate best_;
  bool fits_ = false;
  std::uint64_t considered_ = 0, evaluations_ = 0;
};

}  // namespace doppler
