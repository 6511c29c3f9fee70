#include "doppler/sim/destructive_bound.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "doppler/sim/communication_bound.h"
#include "doppler/sim/window_flow.h"

#include <cstdlib>
#include <cstdio>
namespace doppler {
namespace {

constexpr double kTolerance = 1e-9;
constexpr std::size_t kIntervals = 96;

class Refutation {
 public:
  Refutation(const Relaxation& relaxation, const std::vector<Seconds>& head, const std::vector<Seconds>& tail, Seconds makespan)
      : forward_(relaxation), backward_(relaxation.reversed()), head_(head), tail_(tail), makespan_(makespan) {}

  bool refuted() {
    for (int round = 0; round < 20; ++round) {
      const double before = std::accumulate(head_.begin(), head_.end(), 0.0) + std::accumulate(tail_.begin(), tail_.end(), 0.0);
      if (!raise()) return why("heads");
      const bool merged = merge();
      if (!clusters_fit()) return why("cluster");
      const double after = std::accumulate(head_.begin(), head_.end(), 0.0) + std::accumulate(tail_.begin(), tail_.end(), 0.0);
      if (!merged && after <= before * (1 + 1e-9)) break;
    }
    if(!flow_fits()) return why("flow");
    return false;
  }
 bool why(const char*w){ if(getenv("WHY")) printf("  T=%.4f refuted by %s\n",makespan_/1e10,w); return true;}

 private:
  bool raise() {
    const OpId n = forward_.op_count();
    std::vector<Seconds> latest(n);
    for (OpId op = 0; op < n; ++op) latest[op] = limit() - tail_[op] - forward_.work[op];
    HeadFinder(forward_, n).raise(head_, latest, together_);
    for (OpId op = 0; op < n; ++op) latest[op] = limit() - head_[op] - forward_.work[op];
    HeadFinder(backward_, n).raise(tail_, latest, together_);
    for (OpId op = 0; op < n; ++op)
      if (head_[op] + forward_.work[op] + tail_[op] > limit()) return false;
    return true;
  }
  bool merge() {
    bool merged = false;
    for (auto [a, b] : together_) {
      const auto ca = forward_.cluster[a], cb = forward_.cluster[b];
      if (ca == cb) continue;
      merged = true;
      for (auto& c : forward_.cluster)
        if (c == cb) c = ca;
    }
    together_.clear();
    backward_.cluster = forward_.cluster;
    return merged;
  }
  bool clusters_fit() {
    const OpId n = forward_.op_count();
    std::vector<std::vector<OpId>> members(n);
    for (OpId op = 0; op < n; ++op) members[forward_.cluster[op]].push_back(op);
    std::vector<Task> tasks;
    std::vector<std::uint32_t> big;
    for (OpId c = 0; c < n; ++c) {
      if (members[c].size() < 1) continue;
      big.push_back(c);
      tasks.clear();
      for (OpId op : members[c]) tasks.push_back({head_[op], forward_.work[op], tail_[op]});
      if (preemptive_bound(tasks, forward_.device_slots) > limit()) return false;
      if (forward_.device_slots == 1) disjunctive(members[c]);
    }
    std::vector<std::vector<char>> apart(n);
    for (auto a : big) {
      apart[a].assign(n, 0);
      for (auto b : big) {
        if (a == b) continue;
        tasks.clear();
        for (OpId op : members[a]) tasks.push_back({head_[op], forward_.work[op], tail_[op]});
        for (OpId op : members[b]) tasks.push_back({head_[op], forward_.work[op], tail_[op]});
        if (preemptive_bound(tasks, forward_.device_slots) > limit()) apart[a][b] = 1;
      }
    }
    for (OpId op = 0; op < n; ++op) {
      for (auto i = forward_.out_begin[op]; i < forward_.out_begin[op + 1]; ++i)
        if (apart[forward_.cluster[op]][forward_.cluster[forward_.out[i].op]]) forward_.out[i].crossing = true;
      for (auto i = forward_.in_begin[op]; i < forward_.in_begin[op + 1]; ++i)
        if (apart[forward_.cluster[op]][forward_.cluster[forward_.in[i].op]]) forward_.in[i].crossing = true;
    }
    backward_.in = forward_.out;
    backward_.out = forward_.in;
    // greedy clique
    std::vector<std::uint32_t> byload = big;
    std::vector<double> load(n);
    for (OpId op = 0; op < n; ++op) load[forward_.cluster[op]] += forward_.work[op];
    std::sort(byload.begin(), byload.end(), [&](auto a, auto b) { return load[a] > load[b]; });
    std::vector<std::uint32_t> clique;
    for (auto a : byload) {
      bool all = true;
      for (auto b : clique) all = all && apart[a][b];
      if (all) clique.push_back(a);
    }
    if (getenv("WHY2")) printf("   clique %zu\n", clique.size());
    return clique.size() <= forward_.total_slots / 1;
  }
  void disjunctive(const std::vector<OpId>& ops) {
    std::vector<Task> tasks;
    for (OpId v : ops) {
      tasks.clear();
      for (OpId u : ops)
        if (u != v && head_[v] + forward_.work[v] + forward_.work[u] + tail_[u] > limit()) tasks.push_back({head_[u], forward_.work[u], 0});
      if (!tasks.empty()) head_[v] = std::max(head_[v], preemptive_bound(tasks, 1));
      tasks.clear();
      for (OpId u : ops)
        if (u != v && head_[u] + forward_.work[u] + forward_.work[v] + tail_[v] > limit()) tasks.push_back({tail_[u], forward_.work[u], 0});
      if (!tasks.empty()) tail_[v] = std::max(tail_[v], preemptive_bound(tasks, 1));
    }
  }
  bool flow_fits() {
    std::vector<WindowedWork> items;
    for (OpId op = 0; op < forward_.op_count(); ++op)
      if (forward_.work[op] > 0) items.push_back({head_[op], limit() - tail_[op], forward_.work[op], forward_.cluster[op]});
    return fits_in_windows(items, forward_.device_slots, forward_.total_slots, kIntervals);
  }
  Seconds limit() const { return makespan_ * (1 + kTolerance); }

  Relaxation forward_, backward_;
  std::vector<Seconds> head_, tail_;
  Seconds makespan_;
  std::vector<std::pair<OpId, OpId>> together_;
};

}  // namespace

Seconds destructive_bound(const Relaxation& relaxation, const std::vector<Seconds>& head,
                          const std::vector<Seconds>& tail, Seconds known, std::size_t effort) {
  Seconds low = known, step = known * 0.002, high = 0;
  for (;; step *= 2) {
    const Seconds t = low + step;
    if (!Refutation(relaxation, head, tail, t).refuted()) { high = t; break; }
    low = t;
  }
  for (std::size_t i = 0; i < effort && high - low > low * 1e-5; ++i) {
    const Seconds middle = (low + high) / 2;
    if (Refutation(relaxation, head, tail, middle).refuted()) low = middle;
    else high = middle;
  }
  return low;
}

}  // namespace doppler
