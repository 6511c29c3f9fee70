#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "doppler/method.h"
#include "doppler/place/search/candidate.h"

namespace doppler {

// The best placement that `exact` has seen, and what it may still spend. Nodes of a search tree are about as
// expensive as simulations and count as such. Internal to `exact`.
class SearchRecord {
 public:
  SearchRecord(Objective& objective, const MethodOptions& options)
      : options_(options),
        objective_(objective),
        evaluations_per_look_(1 + kOpsPerLook / objective.problem().op_count()),
        next_look_(evaluations_per_look_),
        grain_(objective.exact() && integer_times(objective.problem()) ? 1 : 0) {}

  // The value, infinite if the placement does not fit in memory; keeps the best.
  Seconds evaluate(const Placement& placement);
  void count(std::uint64_t evaluations = 1);
  bool exhausted() const { return exhausted_; }

  bool empty() const { return best_.empty(); }  // nothing found yet
  Seconds makespan() const { return best_.value; }
  const Placement& placement() const { return best_.placement; }
  std::uint64_t evaluations() const { return evaluations_; }
  // The longest makespan that would be better.
  Seconds next_better() const { return best_.value - grain_; }
  // True if nothing better can come from a branch with this lower bound; exact for integer times, otherwise
  // up to rounding.
  bool beats(Seconds bound) const {
    return grain_ > 0 ? bound > next_better() : bound >= best_.value * (1 - kRounding);
  }

 private:
  static constexpr double kRounding = 1e-11;
  static constexpr std::uint64_t kOpsPerLook = 10'000;  // evaluated before the clock is looked at again

  const MethodOptions& options_;
  Objective& objective_;
  std::uint64_t evaluations_per_look_, next_look_;
  Seconds grain_;  // all makespans are multiples of it; 0: unknown
  Candidate best_;
  std::uint64_t evaluations_ = 0;
  bool exhausted_ = false;
};

// The ops of each cluster (see Consequences), ascending.
class ClusterMembers {
 public:
  explicit ClusterMembers(std::span<const std::uint32_t> cluster)
      : cluster_(cluster.begin(), cluster.end()), members_(cluster.size()) {
    for (OpId op = 0; op < cluster_.size(); ++op) members_[cluster_[op]].push_back(op);
  }
  std::span<const OpId> of(OpId op) const { return members_[cluster_[op]]; }

 private:
  std::vector<std::uint32_t> cluster_;
  std::vector<std::vector<OpId>> members_;
};

// What an unfinished depth-first search has proved: the least bound among the children, at every depth from
// the root to the node at hand, that it did not get to; or the best found.
template <typename Child>
Seconds least_open_bound(const std::vector<std::vector<Child>>& children, const std::vector<std::size_t>& next_child,
                         std::size_t depth, Seconds best) {
  for (std::size_t d = 0; d <= depth; ++d)
    for (std::size_t i = next_child[d]; i < children[d].size(); ++i) best = std::min(best, children[d][i].bound);
  return best;
}

}  // namespace doppler
