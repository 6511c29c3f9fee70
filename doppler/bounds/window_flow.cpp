#include "doppler/bounds/window_flow.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace doppler {
namespace {

// A flow that misses this fraction of the work is called complete: rounding must never refute what is
// feasible.
constexpr double kFlowTolerance = 1e-9;

// Maximum flow by Dinic's method on real capacities.
class FlowNetwork {
 public:
  explicit FlowNetwork(std::size_t nodes) : first_(nodes, kNone), level_(nodes), current_(nodes) {}

  std::uint32_t add_node() {
    first_.push_back(kNone);
    level_.push_back(0);
    current_.push_back(0);
    return static_cast<std::uint32_t>(first_.size() - 1);
  }
  void add_edge(std::uint32_t from, std::uint32_t to, double capacity) {
    edges_.push_back({to, first_[from], capacity});
    first_[from] = static_cast<std::uint32_t>(edges_.size() - 1);
    edges_.push_back({from, first_[to], 0});
    first_[to] = static_cast<std::uint32_t>(edges_.size() - 1);
  }
  // Residual capacities up to `negligible` count as none.
  double maximum(std::uint32_t source, std::uint32_t sink, double negligible) {
    negligible_ = negligible;
    double total = 0;
    while (level_nodes(source, sink)) {
      current_ = first_;
      while (const double pushed = push(source, sink)) total += pushed;
    }
    return total;
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  struct Edge {
    std::uint32_t to, next;
    double capacity;
  };

  bool level_nodes(std::uint32_t source, std::uint32_t sink) {
    std::fill(level_.begin(), level_.end(), kNone);
    level_[source] = 0;
    queue_.assign(1, source);
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      for (std::uint32_t e = first_[queue_[i]]; e != kNone; e = edges_[e].next) {
        if (edges_[e].capacity <= negligible_ || level_[edges_[e].to] != kNone) continue;
        level_[edges_[e].to] = level_[queue_[i]] + 1;
        queue_.push_back(edges_[e].to);
      }
    }
    return level_[sink] != kNone;
  }

  // One augmenting path in the level graph, by depth-first search with an explicit path; 0 if there is none.
  double push(std::uint32_t source, std::uint32_t sink) {
    path_.clear();
    std::uint32_t node = source;
    while (node != sink) {
      std::uint32_t& e = current_[node];
      while (e != kNone && (edges_[e].capacity <= negligible_ || level_[edges_[e].to] != level_[node] + 1))
        e = edges_[e].next;
      if (e != kNone) {
        path_.push_back(e);
        node = edges_[e].to;
      } else if (path_.empty()) {
        return 0;
      } else {  // a dead end: step back and never come here again in this phase
        node = edges_[path_.back() ^ 1].to;
        current_[node] = edges_[path_.back()].next;
        path_.pop_back();
      }
    }
    double amount = std::numeric_limits<double>::infinity();
    for (const std::uint32_t e : path_) amount = std::min(amount, edges_[e].capacity);
    for (const std::uint32_t e : path_) {
      edges_[e].capacity -= amount;
      edges_[e ^ 1].capacity += amount;
    }
    return amount;
  }

  std::vector<std::uint32_t> first_, level_, current_, queue_, path_;
  std::vector<Edge> edges_;
  double negligible_ = 0;
};

// The ends of the windows, those of large work first, until there are enough.
std::vector<Seconds> interval_borders(std::span<const WindowedWork> items, std::size_t limit) {
  Seconds begin = std::numeric_limits<Seconds>::infinity(), end = 0;
  for (const WindowedWork& item : items) {
    begin = std::min(begin, item.from);
    end = std::max(end, item.to);
  }
  std::vector<std::uint32_t> by_work(items.size());
  std::iota(by_work.begin(), by_work.end(), 0);
  std::stable_sort(by_work.begin(), by_work.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return items[a].work > items[b].work; });
  std::vector<Seconds> borders = {begin, end};
  const auto add = [&](Seconds border) {
    const auto place = std::lower_bound(borders.begin(), borders.end(), border);
    if (place == borders.end() || *place != border) borders.insert(place, border);
  };
  for (const std::uint32_t i : by_work) {
    if (borders.size() > limit) break;
    add(items[i].from);
    add(items[i].to);
  }
  return borders;
}

}  // namespace

bool fits_in_windows(std::span<const WindowedWork> items, double device_slots, double total_slots,
                     std::size_t interval_limit) {
  if (items.empty()) return true;
  const std::vector<Seconds> borders = interval_borders(items, interval_limit);
  const std::size_t intervals = borders.size() - 1;
  const std::uint32_t source = 0, sink = 1, first_interval = 2;
  const auto first_item = static_cast<std::uint32_t>(first_interval + intervals);
  FlowNetwork network(first_item + items.size());
  for (std::uint32_t i = 0; i < intervals; ++i)
    network.add_edge(first_interval + i, sink, total_slots * (borders[i + 1] - borders[i]));

  std::map<std::uint32_t, std::uint32_t> members;
  for (const WindowedWork& item : items) ++members[item.cluster];
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> cluster_nodes;  // by (cluster, interval)
  double total = 0;
  for (std::uint32_t k = 0; k < items.size(); ++k) {
    const WindowedWork& item = items[k];
    total += item.work;
    network.add_edge(source, first_item + k, item.work);
    // The last border not after `from`, and the first not before `to`.
    auto i =
        static_cast<std::uint32_t>(std::upper_bound(borders.begin(), borders.end(), item.from) - borders.begin() - 1);
    for (; i < intervals && borders[i] < item.to; ++i) {
      const Seconds length = borders[i + 1] - borders[i];
      if (members[item.cluster] == 1) {
        network.add_edge(first_item + k, first_interval + i, length);
        continue;
      }
      const auto [entry, added] = cluster_nodes.try_emplace({item.cluster, i}, 0);
      if (added) {
        entry->second = network.add_node();
        network.add_edge(entry->second, first_interval + i, device_slots * length);
      }
      network.add_edge(first_item + k, entry->second, length);
    }
  }
  return network.maximum(source, sink, total * kFlowTolerance * 1e-3) >=
         total * (1 - kFlowTolerance * static_cast<double>(items.size()));
}

}  // namespace doppler
