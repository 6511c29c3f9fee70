#include "doppler/place/search/search_state.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "doppler/base/error.h"
#include "doppler/graph/levels.h"

namespace doppler {
namespace {

constexpr std::uint32_t kLargestCluster = 31;
constexpr std::uint32_t kLongestChain = 13;
constexpr std::uint32_t kFarthestShift = 512;  // bounds the cost of a move on large graphs

}  // namespace

SearchState::SearchState(const Problem& problem, bool moves_order)
    : problem_(problem), moves_order_(moves_order), visited_(problem.op_count(), 0) {
  const Graph& graph = problem.graph();
  const OpId n = graph.op_count();
  begin_.push_back(0);
  neighbours_.reserve(2 * graph.edge_count());
  for (OpId op = 0; op < n; ++op) {
    for (const TensorId tensor : graph.inputs(op)) neighbours_.push_back(graph.producer(tensor));
    in_degree_.push_back(static_cast<std::uint32_t>(graph.inputs(op).size()));
    for (const TensorId tensor : graph.outputs(op))
      neighbours_.insert(neighbours_.end(), graph.consumers(tensor).begin(), graph.consumers(tensor).end());
    begin_.push_back(static_cast<std::uint32_t>(neighbours_.size()));
  }

  // Peers are interchangeable at first sight: the blocks of one tensor operation.
  const std::vector<std::uint32_t> depth = depths(graph);
  const auto key = [&](OpId op) { return std::tuple(depth[op], graph.kind_id(op), problem.costs().mean_time(op)); };
  peers_.resize(n);
  std::iota(peers_.begin(), peers_.end(), 0);
  std::stable_sort(peers_.begin(), peers_.end(), [&](OpId a, OpId b) { return key(a) < key(b); });
  peer_class_.resize(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (i == 0 || key(peers_[i - 1]) != key(peers_[i])) peer_begin_.push_back(i);
    peer_class_[peers_[i]] = static_cast<std::uint32_t>(peer_begin_.size() - 1);
  }
  peer_begin_.push_back(n);

  order_.resize(n);
  if (problem.memory_limited()) parameter_bytes_.resize(problem.device_count());
  changes_.reserve(n);
  members_.reserve(kLargestCluster + 1);
}

void SearchState::assign(const Placement& placement) {
  device_of_op_ = placement.device_of_op;
  std::vector<OpId> order(problem_.op_count());
  const std::vector<std::uint32_t>& rank =
      placement.priority.empty() ? default_priority(problem_.costs()) : placement.priority;
  for (OpId op = 0; op < problem_.op_count(); ++op) order[rank[op]] = op;
  assign_order(order);
  std::fill(parameter_bytes_.begin(), parameter_bytes_.end(), 0);
  if (!parameter_bytes_.empty())
    for (OpId op = 0; op < problem_.op_count(); ++op)
      parameter_bytes_[device_of_op_[op]] += problem_.graph().parameter_bytes(op);
}

void SearchState::assign_order(const std::vector<OpId>& order) {
  // An order that is not topological becomes one as it does in the simulator: an op waits for its producers.
  rank_ = line_up(problem_.graph(), ranks_from_order(order));
  for (OpId op = 0; op < problem_.op_count(); ++op) order_[rank_[op]] = op;
}

void SearchState::touch(std::uint32_t position) {
  first_touched_ = std::min(first_touched_, position);
  last_touched_ = std::max(last_touched_, position);
}

bool SearchState::set_device(OpId op, DeviceId device) {
  if (device_of_op_[op] == device) return false;
  if (!problem_.allows(op, device)) {
    allowed_ = false;
    return false;
  }
  for (const OpId member : problem_.unit(op)) {
    changes_.push_back({member, device_of_op_[member]});
    if (!parameter_bytes_.empty()) {
      parameter_bytes_[device_of_op_[member]] -= problem_.graph().parameter_bytes(member);
      parameter_bytes_[device] += problem_.graph().parameter_bytes(member);
    }
    device_of_op_[member] = device;
    touch(rank_[member]);
  }
  return true;
}

void SearchState::shift(std::uint32_t from, std::uint32_t to) {
  const OpId op = order_[from];
  for (; from < to; ++from) rank_[order_[from] = order_[from + 1]] = from;
  for (; from > to; --from) rank_[order_[from] = order_[from - 1]] = from;
  rank_[order_[to] = op] = to;
}

bool SearchState::fits_in_memory() const {
  for (DeviceId id = 0; id < parameter_bytes_.size(); ++id) {
    const Bytes capacity = problem_.machine().device(id).memory;
    if (capacity > 0 && parameter_bytes_[id] > capacity) return false;
  }
  return true;
}

bool SearchState::move(Rng& rng) {
  changes_.clear();
  shifted_from_ = shifted_to_ = 0;
  first_touched_ = problem_.op_count();
  last_touched_ = 0;
  allowed_ = true;
  bool changed = false;
  // Weights by experiment on the published graphs; pull, chain and swap_window each shorten the search
  // considerably.
  const double dice = rng.uniform();
  if (moves_order_ && dice < 0.25) {
    changed = reorder(random_op(rng), rng);
  } else {
    const double kind = moves_order_ ? (dice - 0.25) / 0.75 : dice;
    if (kind < 0.24) {
      changed = one_op(rng);
    } else if (kind < 0.48) {
      changed = follow_neighbour(rng);
    } else if (kind < 0.65) {
      changed = cluster(rng);
    } else if (kind < 0.75) {
      changed = swap(rng);
    } else if (kind < 0.80) {
      changed = swap_window(rng);
    } else if (kind < 0.90) {
      changed = pull(rng);
    } else {
      changed = chain(rng);
    }
    // An op that changes its device may want another turn there too.
    if (changed && allowed_ && moves_order_ && changes_.size() == 1 && rng.below(4) == 0)
      reorder(changes_.front().op, rng);
  }
  if (!changed) return false;
  if (allowed_ && fits_in_memory()) return true;
  undo();
  return false;
}

void SearchState::undo() {
  if (shifted_from_ != shifted_to_) shift(shifted_to_, shifted_from_);
  for (std::size_t i = changes_.size(); i-- > 0;) {
    const auto [op, before] = changes_[i];
    if (!parameter_bytes_.empty()) {
      parameter_bytes_[device_of_op_[op]] -= problem_.graph().parameter_bytes(op);
      parameter_bytes_[before] += problem_.graph().parameter_bytes(op);
    }
    device_of_op_[op] = before;
  }
  changes_.clear();
  shifted_from_ = shifted_to_ = 0;
}

DeviceId SearchState::random_device(OpId op, Rng& rng) const {
  const auto devices = problem_.devices(op);
  return devices[rng.below(static_cast<std::uint32_t>(devices.size()))];
}

DeviceId SearchState::device_of_neighbour(OpId op, Rng& rng) const {
  const auto around = neighbours(op);
  if (around.empty()) return device_of_op_[op];
  return device_of_op_[around[rng.below(static_cast<std::uint32_t>(around.size()))]];
}

bool SearchState::one_op(Rng& rng) {
  const OpId op = random_op(rng);
  return set_device(op, random_device(op, rng));
}

bool SearchState::follow_neighbour(Rng& rng) {
  const OpId op = random_op(rng);
  return set_device(op, device_of_neighbour(op, rng));
}

// A connected piece of what is on one device moves to another.
bool SearchState::cluster(Rng& rng) {
  const OpId seed = random_op(rng);
  const DeviceId from = device_of_op_[seed];
  const DeviceId to = rng.below(2) == 0 ? random_device(seed, rng) : device_of_neighbour(seed, rng);
  if (to == from) return false;
  const std::uint32_t size = 2 + rng.below(kLargestCluster - 1);
  ++visit_;
  members_.clear();
  members_.push_back(seed);
  visited_[seed] = visit_;
  for (std::size_t i = 0; i < members_.size() && members_.size() < size; ++i) {
    for (const OpId op : neighbours(members_[i])) {
      if (visited_[op] == visit_ || device_of_op_[op] != from || members_.size() >= size) continue;
      visited_[op] = visit_;
      members_.push_back(op);
    }
  }
  bool changed = false;
  for (const OpId op : members_) changed |= set_device(op, to);
  return changed;
}

// Two ops change places, mostly peers.
bool SearchState::swap(Rng& rng) {
  const OpId a = random_op(rng);
  const std::uint32_t first = peer_begin_[peer_class_[a]];
  const std::uint32_t count = peer_begin_[peer_class_[a] + 1] - first;
  const OpId b = count > 1 && rng.below(4) > 0 ? peers_[first + rng.below(count)] : any_op(rng);
  const DeviceId device_of_a = device_of_op_[a], device_of_b = device_of_op_[b];
  if (device_of_a == device_of_b) return false;
  set_device(a, device_of_b);
  if (allowed_) set_device(b, device_of_a);
  return true;
}

// Two devices change places during a stretch of the graph.
bool SearchState::swap_window(Rng& rng) {
  const OpId n = problem_.op_count();
  const DeviceId a = rng.below(problem_.device_count()), b = rng.below(problem_.device_count());
  if (a == b) return false;
  const OpId first = any_op(rng);
  const OpId length = 1 + rng.below(1 + rng.below(n));
  const OpId last = rng.below(3) == 0 ? n : std::min(n - first, length) + first;
  const auto order = problem_.graph().topological_order();
  ++visit_;  // an op that moved with its unit must not move back
  bool changed = false;
  for (OpId i = first; i < last && allowed_; ++i) {
    const OpId op = order[i];
    const DeviceId device = device_of_op_[op];
    if ((device != a && device != b) || visited_[op] == visit_) continue;
    for (const OpId member : problem_.unit(op)) visited_[member] = visit_;
    changed |= set_device(op, device == a ? b : a);
  }
  return changed;
}

// An op draws some of its producers, or of its consumers, to its device.
bool SearchState::pull(Rng& rng) {
  const OpId op = random_op(rng);
  bool changed = false;
  for (const OpId other : rng.below(2) == 0 ? producers(op) : consumers(op))
    if (rng.below(2) == 0) changed |= set_device(other, device_of_op_[op]);
  return changed;
}

// A path moves to one device.
bool SearchState::chain(Rng& rng) {
  OpId op = random_op(rng);
  const DeviceId device = random_device(op, rng);
  bool changed = false;
  for (std::uint32_t left = 2 + rng.below(kLongestChain - 1); left > 0; --left) {
    changed |= set_device(op, device);
    const auto next = consumers(op);
    if (next.empty()) break;
    op = next[rng.below(static_cast<std::uint32_t>(next.size()))];
    if (in_degree_[op] > 1 && rng.below(2) == 0) break;
  }
  return changed;
}

// An op takes another turn between its last producer and its first consumer.
bool SearchState::reorder(OpId op, Rng& rng) {
  const std::uint32_t from = rank_[op];
  std::uint32_t low = from > kFarthestShift ? from - kFarthestShift : 0;
  std::uint32_t high = std::min(from + kFarthestShift, problem_.op_count() - 1);
  for (const OpId producer : producers(op)) low = std::max(low, rank_[producer] + 1);
  for (const OpId consumer : consumers(op)) high = std::min(high, rank_[consumer] - 1);
  if (low >= high) return false;
  std::uint32_t to = low + rng.below(high - low + 1);
  if (rng.below(2) == 0) {  // near by
    const std::uint32_t distance = 1 + rng.below(8);
    to = rng.below(2) == 0 ? std::min(high, from + distance) : std::max(low + distance, from) - distance;
  }
  if (to == from) return false;
  shifted_from_ = from;
  shifted_to_ = to;
  shift(from, to);
  touch(from);
  touch(to);
  return true;
}

}  // namespace doppler
