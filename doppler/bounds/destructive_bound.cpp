// Assume that some execution takes at most T and derive consequences until nothing follows or a contradiction
// appears; a contradiction proves that every execution takes longer than T. The consequences:
//
// (a) An op starts in [head, T - tail - work]. If HeadFinder shows that v would start later than that were u
//     on another device, then u and v share a device: their clusters merge.
// (b) A cluster runs on one device, so its preemptive one-device bound is at most T.
// (c) If two clusters together violate (b), they are on different devices: arcs between them certainly cost
//     their delay. More clusters that are pairwise apart than devices are a contradiction.
// (d) All work fits into its windows, with no more than one device serving a cluster at any time
//     (fits_in_windows). This catches the end game where few long clusters remain and devices must idle.
//
// Bigger T allows more, so T is found by doubling steps and bisection.
#include "doppler/bounds/destructive_bound.h"

#include <algorithm>
#include <numeric>

#include "doppler/bounds/communication_bound.h"
#include "doppler/bounds/window_flow.h"

namespace doppler {
namespace {

constexpr double kTolerance = 1e-9;         // relative; rounding must never refute what is feasible
constexpr int kRounds = 20;                 // of propagation; they rarely need more than five
constexpr std::size_t kIntervals = 96;      // of the flow test
constexpr std::size_t kHeavyClusters = 48;  // compared pairwise
constexpr double kFirstStep = 1.0 / 512;    // relative to the known bound
constexpr double kPrecision = 1e-5;         // relative; where the bisection stops

class Refutation {
 public:
  Refutation(const Relaxation& relaxation, const std::vector<Seconds>& head, const std::vector<Seconds>& tail,
             Seconds makespan)
      : forward_(relaxation),
        backward_(relaxation.reversed()),
        head_(head),
        tail_(tail),
        limit_(makespan * (1 + kTolerance)) {}

  Consequences consequences() {
    Consequences result;
    result.contradiction = succeeds();
    result.head = std::move(head_);
    result.tail = std::move(tail_);
    result.cluster = std::move(forward_.cluster);
    return result;
  }

  bool succeeds() {
    for (int round = 0; round < kRounds; ++round) {
      const double before = progress();
      if (!raise_heads_and_tails()) return true;
      const bool merged = merge_clusters();
      if (!clusters_fit()) return true;
      if (!heavy_clusters_fit()) return true;
      if (!merged && progress() <= before * (1 + kTolerance)) break;
    }
    return !windows_fit();
  }

 private:
  double progress() const {
    return std::accumulate(tail_.begin(), tail_.end(), std::accumulate(head_.begin(), head_.end(), 0.0));
  }

  bool raise_heads_and_tails() {
    const OpId n = forward_.op_count();
    const auto latest = [&](const std::vector<Seconds>& other_side) {
      std::vector<Seconds> result(n);
      for (OpId op = 0; op < n; ++op) result[op] = limit_ - other_side[op] - forward_.work[op];
      return result;
    };
    HeadFinder(forward_, n).raise(head_, latest(tail_), together_);
    HeadFinder(backward_, n).raise(tail_, latest(head_), together_);
    for (OpId op = 0; op < n; ++op)
      if (head_[op] + forward_.work[op] + tail_[op] > limit_) return false;
    return true;
  }

  bool merge_clusters() {
    if (together_.empty()) return false;
    const OpId n = forward_.op_count();
    std::vector<std::uint32_t> parent(n);  // of clusters, by path halving
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](std::uint32_t c) {
      while (parent[c] != c) c = parent[c] = parent[parent[c]];
      return c;
    };
    for (const auto& [a, b] : together_) {
      const std::uint32_t first = root(forward_.cluster[a]), second = root(forward_.cluster[b]);
      parent[std::max(first, second)] = std::min(first, second);
    }
    together_.clear();
    for (OpId op = 0; op < n; ++op) forward_.cluster[op] = root(forward_.cluster[op]);
    backward_.cluster = forward_.cluster;
    return true;
  }

  // (b).
  bool clusters_fit() {
    const OpId n = forward_.op_count();
    members_.assign(n, {});
    for (OpId op = 0; op < n; ++op) members_[forward_.cluster[op]].push_back(op);
    for (const auto& cluster : members_) {
      if (cluster.size() < 2) continue;
      tasks_.clear();
      add_tasks(cluster);
      if (preemptive_bound(tasks_, forward_.device_slots) > limit_) return false;
    }
    return true;
  }

  void add_tasks(const std::vector<OpId>& ops) {
    for (const OpId op : ops) tasks_.push_back({head_[op], forward_.work[op], tail_[op]});
  }

  // (c).
  bool heavy_clusters_fit() {
    std::vector<Seconds> load(members_.size(), 0.0);
    for (OpId op = 0; op < forward_.op_count(); ++op) load[forward_.cluster[op]] += forward_.work[op];
    std::vector<std::uint32_t> heavy;
    for (std::uint32_t c = 0; c < members_.size(); ++c)
      if (!members_[c].empty()) heavy.push_back(c);
    std::stable_sort(heavy.begin(), heavy.end(), [&](auto a, auto b) { return load[a] > load[b]; });
    heavy.resize(std::min(heavy.size(), kHeavyClusters));

    constexpr std::size_t kLight = kHeavyClusters;
    std::vector<std::size_t> rank(members_.size(), kLight);  // of a cluster among the heavy ones
    for (std::size_t i = 0; i < heavy.size(); ++i) rank[heavy[i]] = i;
    std::vector<char> apart((kLight + 1) * (kLight + 1), 0);
    std::vector<std::size_t> clique;  // pairwise apart, found greedily
    for (std::size_t i = 0; i < heavy.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        tasks_.clear();
        add_tasks(members_[heavy[i]]);
        add_tasks(members_[heavy[j]]);
        apart[i * (kLight + 1) + j] = apart[j * (kLight + 1) + i] =
            preemptive_bound(tasks_, forward_.device_slots) > limit_;
      }
      if (std::all_of(clique.begin(), clique.end(), [&](auto j) { return apart[i * (kLight + 1) + j]; }))
        clique.push_back(i);
    }
    if (clique.size() > forward_.device_count) return false;
    const auto mark = [&](std::vector<Relaxation::Arc>& arcs, const std::vector<std::uint32_t>& begin) {
      for (OpId op = 0; op < forward_.op_count(); ++op)
        for (std::uint32_t i = begin[op]; i < begin[op + 1]; ++i)
          if (apart[rank[forward_.cluster[op]] * (kLight + 1) + rank[forward_.cluster[arcs[i].op]]])
            arcs[i].crossing = true;
    };
    mark(forward_.out, forward_.out_begin);
    mark(forward_.in, forward_.in_begin);
    backward_.in = forward_.out;
    backward_.out = forward_.in;
    return true;
  }

  bool windows_fit() const {
    std::vector<WindowedWork> items;
    for (OpId op = 0; op < forward_.op_count(); ++op)
      if (forward_.work[op] > 0)
        items.push_back({head_[op], limit_ - tail_[op], forward_.work[op], forward_.cluster[op]});
    return fits_in_windows(items, forward_.device_slots, forward_.total_slots, kIntervals);
  }

  Relaxation forward_, backward_;
  std::vector<Seconds> head_, tail_;
  Seconds limit_;
  std::vector<std::pair<OpId, OpId>> together_;
  std::vector<std::vector<OpId>> members_;  // by cluster
  std::vector<HeadTailWork> tasks_;
};

}  // namespace

Consequences assume_makespan(const Relaxation& relaxation, const std::vector<Seconds>& head,
                             const std::vector<Seconds>& tail, Seconds makespan) {
  return Refutation(relaxation, head, tail, makespan).consequences();
}

Seconds destructive_bound(const Relaxation& relaxation, const std::vector<Seconds>& head,
                          const std::vector<Seconds>& tail, Seconds known, int attempts) {
  const auto refuted = [&](Seconds makespan) { return Refutation(relaxation, head, tail, makespan).succeeds(); };
  Seconds low = known, high = 0;
  for (Seconds step = known * kFirstStep; high == 0 && attempts > 0; step *= 2, --attempts) {
    if (refuted(low + step))
      low += step;
    else
      high = low + step;
  }
  for (; high - low > low * kPrecision && attempts > 0; --attempts) {
    const Seconds middle = (low + high) / 2;
    (refuted(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace doppler
