#pragma once

#include "doppler/place/memory.h"

namespace doppler {

// The best of several placements, by simulation under the problem's rules; the first of equals. One that fits
// in memory is better than any that does not.
class Incumbent {
 public:
  Incumbent(std::string_view method, const Problem& problem, const MethodOptions& options)
      : method_(method), problem_(&problem), options_(&options), simulator_(problem) {}

  void consider(Placement placement);
  // True when the budget is used up; never before one placement was considered, so there is always an answer.
  bool exhausted() const;
  // The best, made to fit in memory. Throws InfeasibleError if it cannot.
  Proposal finish() &&;

 private:
  std::string_view method_;
  const Problem* problem_;
  const MethodOptions* options_;
  Simulator simulator_;
  Proposal best_;
  bool best_fits_ = false;
  Seconds best_makespan_ = Costs::kNever;
};

}  // namespace doppler
