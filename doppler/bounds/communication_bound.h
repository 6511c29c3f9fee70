#pragma once

#include <utility>
#include <vector>

#include "doppler/bounds/relaxation.h"
#include "doppler/budget.h"

namespace doppler {

// Earliest starts that account for communication: an input is either moved, or computed on the same device
// one op after the other. For tails (the time that must pass after an op ends) pass the reversed relaxation.
class HeadFinder {
 public:
  // Looks at no more than `ancestor_limit` ancestors of each op, the nearest in topological order: time grows
  // with op count times that number. Throws OutOfTime.
  HeadFinder(const Relaxation& relaxation, std::size_t ancestor_limit, const Budget& budget = Budget::unlimited());

  // Raises `head` (a valid lower bound on every start, e.g. zeros) in place.
  void raise(std::vector<Seconds>& head);
  // The same, and appends to `together` the pairs of ops that share a device in every execution in which no
  // op starts later than `latest_start` says.
  void raise(std::vector<Seconds>& head, const std::vector<Seconds>& latest_start,
             std::vector<std::pair<OpId, OpId>>& together);

 private:
  void collect_ancestors(OpId op, const std::vector<Seconds>& head);
  void share_within_clusters(OpId op);
  Seconds serial(std::size_t count, const std::vector<Seconds>& head);
  Seconds joint_head(OpId op, const std::vector<Seconds>& head);

  const Relaxation* relaxation_;
  std::size_t ancestor_limit_;
  std::size_t arcs_left_ = 0;  // that may still be looked at: what many ops read is an ancestor of all of them
  Watch watch_;
  std::vector<std::uint32_t> position_;  // in the topological order
  // About the ancestors of the op at hand; valid where stamp_ is the op.
  std::vector<OpId> stamp_, cluster_stamp_;
  std::vector<Seconds> path_;           // longest work between the ancestor's end and the op's start
  std::vector<Seconds> apart_;          // the op's earliest start if the ancestor is on another device
  std::vector<Seconds> cluster_apart_;  // the largest of a cluster
  std::vector<std::uint32_t> heap_;     // positions of ancestors to visit
  std::vector<OpId> ancestors_, suspects_;
  std::vector<HeadTailWork> tasks_;
};

}  // namespace doppler
