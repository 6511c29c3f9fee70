// Heads that account for communication.
//
// Fix an op v. For an ancestor u let path(u) be the longest chain of work strictly between u and v, and
//
//   apart(u) = max over arcs u -> w, w an ancestor of v or v itself, of
//                head(u) + work(u) + delay(u, w)                                       if w = v
//                min(apart(w), head(u) + work(u) + delay(u, w) + work(w) + path(w))    otherwise.
//
// Claim: if u is not on v's device, v starts no earlier than apart(u). Proof by induction, ancestors nearest
// to v first. Take any such w. If w is on v's device (w = v always is), u and w are on different devices, so
// w starts no earlier than head(u) + work(u) + delay(u, w), and the chain from w to v follows. If not, v
// starts at apart(w) or later. The minimum of the two holds in both cases; and it holds for every w, hence
// the maximum.
//
// Therefore, if v starts at t, every ancestor in S(t) = {u : apart(u) > t} is on v's device, and all of S(t)
// runs there before t: t >= J(S(t)), where J is the preemptive one-device bound with heads head(u) and tails
// path(u). With the ancestors sorted by falling apart, and S_k the first k of them, some k has S_k = S(t), so
// t >= J(S_k), and t >= apart of number k + 1, which is not in S(t). Hence
//
//   t >= min over k of max(J(S_k), apart(u_{k+1})).
//
// J rises and apart falls with k, so the minimum is at their crossing, found by bisection. Ops of v's cluster
// have apart = infinity; ops of one cluster are all on v's device or all not, so each has the largest apart
// among them. Leaving ancestors out makes maxima smaller and S_k smaller: the bound stays valid. With several
// slots per device J is divided by the number of slots, see preemptive_bound. This is in the spirit of
// Papadimitriou and Yannakakis (1990), for the case that no op may run twice, which makes the serial part
// stronger.
#include "doppler/bounds/communication_bound.h"

#include <algorithm>
#include <limits>

namespace doppler {
namespace {
constexpr Seconds kInfinity = std::numeric_limits<Seconds>::infinity();
constexpr std::uint64_t kStepsPerAncestor = 16;
constexpr std::size_t kMostArcs = 100'000'000;  // a fraction of a second
}  // namespace

HeadFinder::HeadFinder(const Relaxation& relaxation, std::size_t ancestor_limit, const Budget& budget)
    : relaxation_(&relaxation), ancestor_limit_(ancestor_limit), watch_(budget) {
  const OpId n = relaxation.op_count();
  position_.resize(n);
  for (std::uint32_t i = 0; i < n; ++i) position_[relaxation.order[i]] = i;
  stamp_.assign(n, n);
  cluster_stamp_.assign(n, n);
  path_.resize(n);
  apart_.resize(n);
  cluster_apart_.resize(n);
}

void HeadFinder::raise(std::vector<Seconds>& head) {
  std::vector<std::pair<OpId, OpId>> none;
  raise(head, {}, none);
}

void HeadFinder::raise(std::vector<Seconds>& head, const std::vector<Seconds>& latest_start,
                       std::vector<std::pair<OpId, OpId>>& together) {
  const Relaxation& relaxation = *relaxation_;
  std::fill(stamp_.begin(), stamp_.end(), relaxation.op_count());
  std::fill(cluster_stamp_.begin(), cluster_stamp_.end(), relaxation.op_count());
  arcs_left_ = kMostArcs;
  for (const OpId op : relaxation.order) {
    for (const auto& arc : relaxation.predecessors(op))
      head[op] = std::max(head[op], head[arc.op] + relaxation.work[arc.op] + (arc.crossing ? arc.delay : 0));
    watch_.step(1 + relaxation.predecessors(op).size());
    if (relaxation.predecessors(op).empty() || ancestor_limit_ == 0) continue;
    collect_ancestors(op, head);
    head[op] = std::max(head[op], joint_head(op, head));
    if (latest_start.empty()) continue;
    for (const OpId ancestor : ancestors_)
      if (apart_[ancestor] > latest_start[op] && relaxation.cluster[ancestor] != relaxation.cluster[op])
        together.emplace_back(ancestor, op);
  }
}

// Visits ancestors in reverse topological order, so that whatever lies between an ancestor and the op is
// known.
void HeadFinder::collect_ancestors(OpId op, const std::vector<Seconds>& head) {
  const Relaxation& relaxation = *relaxation_;
  ancestors_.clear();
  heap_.clear();
  const auto push_predecessors = [&](OpId of) {
    for (const auto& arc : relaxation.predecessors(of)) {
      if (stamp_[arc.op] == op) continue;
      stamp_[arc.op] = op;
      heap_.push_back(position_[arc.op]);
      std::push_heap(heap_.begin(), heap_.end());
    }
  };
  push_predecessors(op);
  while (!heap_.empty() && ancestors_.size() < ancestor_limit_) {
    const std::size_t arcs = relaxation.successors(relaxation.order[heap_.front()]).size();
    if (arcs > arcs_left_) break;
    arcs_left_ -= arcs;
    watch_.step(kStepsPerAncestor + arcs);
    std::pop_heap(heap_.begin(), heap_.end());
    const OpId ancestor = relaxation.order[heap_.back()];
    heap_.pop_back();
    ancestors_.push_back(ancestor);
    const Seconds end = head[ancestor] + relaxation.work[ancestor];
    Seconds path = 0, apart = 0;
    for (const auto& arc : relaxation.successors(ancestor)) {
      const Seconds moved = end + arc.delay;
      if (arc.op == op) {
        apart = std::max(apart, moved);
        if (arc.crossing) path = std::max(path, arc.delay);
      } else if (stamp_[arc.op] == op) {
        const Seconds onwards = relaxation.work[arc.op] + path_[arc.op];
        apart = std::max(apart, std::min(apart_[arc.op], moved + onwards));
        path = std::max(path, onwards + (arc.crossing ? arc.delay : 0));
      }
    }
    path_[ancestor] = path;
    apart_[ancestor] = relaxation.cluster[ancestor] == relaxation.cluster[op] ? kInfinity : apart;
    push_predecessors(ancestor);
  }
  share_within_clusters(op);
}

void HeadFinder::share_within_clusters(OpId op) {
  const auto& cluster = relaxation_->cluster;
  for (const OpId ancestor : ancestors_) {
    Seconds& largest = cluster_apart_[cluster[ancestor]];
    if (cluster_stamp_[cluster[ancestor]] != op) largest = 0;
    cluster_stamp_[cluster[ancestor]] = op;
    largest = std::max(largest, apart_[ancestor]);
  }
  for (const OpId ancestor : ancestors_) apart_[ancestor] = cluster_apart_[cluster[ancestor]];
}

// J of the first `count` suspects.
Seconds HeadFinder::serial(std::size_t count, const std::vector<Seconds>& head) {
  tasks_.clear();
  for (std::size_t i = 0; i < count; ++i)
    tasks_.push_back({head[suspects_[i]], relaxation_->work[suspects_[i]], path_[suspects_[i]]});
  return preemptive_bound(tasks_, relaxation_->device_slots);
}

Seconds HeadFinder::joint_head(OpId op, const std::vector<Seconds>& head) {
  const Seconds known = head[op];
  suspects_.clear();  // the others are in no S(t) with t >= known
  for (const OpId ancestor : ancestors_)
    if (apart_[ancestor] > known) suspects_.push_back(ancestor);
  if (serial(suspects_.size(), head) <= known) return known;
  std::stable_sort(suspects_.begin(), suspects_.end(), [&](OpId a, OpId b) { return apart_[a] > apart_[b]; });
  const auto next_apart = [&](std::size_t k) { return k < suspects_.size() ? apart_[suspects_[k]] : known; };
  std::size_t low = 0, high = suspects_.size();  // the smallest k with J(S_k) >= next_apart(k)
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (serial(middle, head) >= next_apart(middle))
      high = middle;
    else
      low = middle + 1;
  }
  const Seconds at_crossing = std::max(serial(low, head), next_apart(low));
  return low == 0 ? at_crossing : std::min(at_crossing, next_apart(low - 1));
}

}  // namespace doppler
