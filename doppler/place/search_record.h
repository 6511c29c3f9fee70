#pragma once

#include <algorithm>
#include <vector>

#include "doppler/place/method.h"
#include "doppler/sim/simulator.h"

namespace doppler {

// The best placement that `exact` has seen, and what it may still spend. Nodes of a search tree are about as
// expensive as simulations and count as such. Internal to `exact`.
class SearchRecord {
 public:
  SearchRecord(const Problem& problem, const MethodOptions& options)
      : problem_(problem), options_(options), simulator_(problem) {}

  // The makespan, infinite if the placement does not fit in memory; keeps the best.
  Seconds simulate(const Placement& placement);
  void count_node() { count(); }
  bool exhausted() const { return exhausted_; }

  Seconds makespan() const { return makespan_; }  // infinite: nothing found yet
  const Placement& placement() const { return placement_; }
  std::uint64_t evaluations() const { return evaluations_; }
  // True if nothing better can come from a branch with this lower bound, rounding aside.
  bool beats(Seconds bound) const { return bound >= makespan_ * (1 - kRounding); }

 private:
  static constexpr double kRounding = 1e-12;
  void count();

  const Problem& problem_;
  const MethodOptions& options_;
  Simulator simulator_;
  Placement placement_;
  Seconds makespan_ = Costs::kNever;
  std::uint64_t evaluations_ = 0;
  bool exhausted_ = false;
};

// What an unfinished depth-first search has proved: the least bound among the children, at every depth from
// the root to the node at hand, that it did not get to; or the best found.
template <typename Child>
Seconds least_open_bound(const std::vector<std::vector<Child>>& children,
                         const std::vector<std::size_t>& next_child, std::size_t depth, Seconds best) {
  for (std::size_t d = 0; d <= depth; ++d)
    for (std::size_t i = next_child[d]; i < children[d].size(); ++i)
      best = std::min(best, children[d][i].bound);
  return best;
}

}  // namespace doppler
