// A node of the tree is a partial schedule. Its children append one op whose producers are all scheduled, on
// one device, at start = max(inputs there, first free slot), never before the op appended last. Sorting the
// ops of an execution by start time gives its path, so every execution of the discipline is reached:
//
// - ordered: an op starts as soon as its device has ended the op before it and its inputs are there.
// - priority: moreover no op waits while a slot of its device is idle. Ranks in order of start give back
//   exactly this execution, so these are all executions that any priority can produce.
// - fifo: moreover the ops of a device start in the order in which they became ready. Among equal ready times
//   any order is allowed here; the simulation of a leaf decides.
//
// With limited channels starts are those for free links, which are never later: bounds hold, and leaves are
// simulated. There the conditions of `priority` cannot be checked, so all orders are searched.
//
// What is left out, and why that is safe:
//
// - Two ops on different devices that start together, in falling topological position: the other order
//   reaches the same schedule.
// - Of several unused interchangeable devices, all but the first: devices can be renamed.
// - For ordered, free links and unlimited memory: an op that would fit whole into an earlier gap of its
//   device. The schedule with the op there is no longer, and has a smaller sum of start times.
// - In the same case: a node B if an earlier node A has the same ops scheduled and is nowhere worse, in the
//   sense of DominanceTable. Proof: of all optimal schedules take those with the least sum of start times,
//   and of these the one whose path comes first. Were it cut at B, then A followed by B's start times would
//   be as good, with a sum no larger. If it could still be shifted to the left its sum would not be least;
//   if not, its path goes through A, which comes before B. Either contradicts the choice.
#include "doppler/place/exact/schedule_tree.h"

#include <algorithm>
#include <numeric>

#include "doppler/bounds/relaxation.h"
#include "doppler/place/exact/dominance_table.h"

namespace doppler {
namespace {

constexpr OpId kNoOp = std::numeric_limits<OpId>::max();

struct Child {
  OpId op;
  DeviceId device;
  Seconds bound, start;
};

// Everything that appending an op changes beside its own start, end and device; saved to be restored.
struct Undo {
  std::uint32_t slot;
  Seconds slot_free, now, last_idle, last_ready, sum_of_starts, makespan;
  OpId last_op;
  bool made_gap;
};

class ScheduleTree {
 public:
  ScheduleTree(const Problem& problem, const Consequences& known, SearchRecord& record);
  Seconds search();

 private:
  struct Gap {
    Seconds from, to;
  };

  std::uint32_t first_slot(DeviceId device) const;
  Seconds inputs_at(OpId op, DeviceId device) const;
  bool depends_on_last(OpId op) const;
  bool legal(OpId op, DeviceId device, Seconds ready, Seconds start) const;
  bool device_open(OpId op, DeviceId device) const;
  void expand(std::size_t depth);
  void append(OpId op, DeviceId device, Undo& undo);
  void remove(const Undo& undo);
  Seconds bound();
  bool dominated();
  void offer_leaf();

  const Problem& problem_;
  const Graph& graph_;
  const Costs& costs_;
  const std::vector<Seconds>&head_, &tail_;
  const ClusterMembers clusters_;
  SearchRecord& record_;
  const bool work_conserving_, first_come_, prunes_by_dominance_;
  std::vector<std::uint32_t> device_kind_;
  std::vector<OpId> by_tail_;  // largest first
  std::vector<std::uint32_t> position_;
  std::vector<Seconds> fastest_;

  // The partial schedule.
  std::vector<OpId> sequence_;
  std::vector<char> scheduled_;
  std::vector<std::uint32_t> pending_, readers_left_;  // inputs and consumers not scheduled
  std::vector<DeviceId> device_;
  std::vector<Seconds> start_, end_;
  std::vector<std::vector<Seconds>> slots_;  // per device: when each slot is free
  std::vector<std::vector<Gap>> gaps_;       // per device with one slot
  std::vector<std::uint32_t> load_;          // ops per device
  std::vector<Bytes> resident_;
  std::vector<Seconds> last_idle_, last_ready_;
  Seconds now_ = 0, sum_of_starts_ = 0, makespan_ = 0;
  OpId last_op_ = kNoOp;

  std::vector<Seconds> earliest_end_, free_slots_;  // scratch of bound()
  std::vector<std::vector<Child>> children_;
  std::vector<std::size_t> next_child_;
  std::vector<Undo> undo_;
  DominanceTable dominance_;
};

ScheduleTree::ScheduleTree(const Problem& problem, const Consequences& known, SearchRecord& record)
    : problem_(problem),
      graph_(problem.graph()),
      costs_(problem.costs()),
      head_(known.head),
      tail_(known.tail),
      clusters_(known.cluster),
      record_(record),
      work_conserving_(problem.rules().discipline != Discipline::ordered && are_delays(problem.rules().links)),
      first_come_(problem.rules().discipline == Discipline::fifo),
      prunes_by_dominance_(problem.rules().discipline == Discipline::ordered && are_delays(problem.rules().links) &&
                           !problem.memory_limited()),
      device_kind_(interchangeable_devices(problem)) {
  const OpId n = problem.op_count();
  by_tail_.resize(n);
  std::iota(by_tail_.begin(), by_tail_.end(), 0);
  std::stable_sort(by_tail_.begin(), by_tail_.end(), [&](OpId a, OpId b) { return tail_[a] > tail_[b]; });
  position_.resize(n);
  for (std::uint32_t i = 0; i < n; ++i) position_[graph_.topological_order()[i]] = i;
  fastest_ = relax(problem).work;
  scheduled_.assign(n, false);
  device_.resize(n);
  start_.resize(n);
  end_.resize(n);
  earliest_end_.resize(n);
  children_.resize(n + 1);
  next_child_.resize(n + 1);
  undo_.resize(n + 1);
  for (OpId op = 0; op < n; ++op) {
    pending_.push_back(static_cast<std::uint32_t>(graph_.inputs(op).size()));
    readers_left_.push_back(0);
    for (const TensorId tensor : graph_.outputs(op))
      readers_left_[op] += static_cast<std::uint32_t>(graph_.consumers(tensor).size());
  }
  for (DeviceId device = 0; device < problem.device_count(); ++device) {
    slots_.emplace_back(problem.machine().device(device).slots, 0.0);
  }
  gaps_.resize(slots_.size());
  load_.assign(slots_.size(), 0);
  resident_.assign(slots_.size(), 0);
  last_idle_.assign(slots_.size(), 0.0);
  last_ready_.assign(slots_.size(), 0.0);
}

std::uint32_t ScheduleTree::first_slot(DeviceId device) const {
  const auto& slots = slots_[device];
  return static_cast<std::uint32_t>(std::min_element(slots.begin(), slots.end()) - slots.begin());
}

Seconds ScheduleTree::inputs_at(OpId op, DeviceId device) const {
  Seconds latest = 0;
  for (const TensorId tensor : graph_.inputs(op)) {
    const OpId producer = graph_.producer(tensor);
    latest = std::max(latest, end_[producer] + costs_.transfer_time(tensor, device_[producer], device));
  }
  return latest;
}

bool ScheduleTree::depends_on_last(OpId op) const {
  for (const TensorId tensor : graph_.inputs(op))
    if (graph_.producer(tensor) == last_op_) return true;
  return false;
}

// Whether the op may go there at all: its cluster, symmetry, resident memory.
bool ScheduleTree::device_open(OpId op, DeviceId device) const {
  for (const OpId member : clusters_.of(op))
    if (!problem_.allows(member, device) || (scheduled_[member] && device_[member] != device)) return false;
  const Bytes capacity = problem_.machine().device(device).memory;
  if (capacity > 0 && resident_[device] + graph_.parameter_bytes(op) > capacity) return false;
  if (load_[device] > 0) return true;
  for (DeviceId other = 0; other < device; ++other)
    if (load_[other] == 0 && device_kind_[other] == device_kind_[device]) return false;
  return true;
}

bool ScheduleTree::legal(OpId op, DeviceId device, Seconds ready, Seconds start) const {
  if (start < now_) return false;
  if (start == now_ && last_op_ != kNoOp && device_[last_op_] != device && position_[op] < position_[last_op_] &&
      !depends_on_last(op))
    return false;
  if (work_conserving_ && start > ready && last_idle_[device] > ready) return false;
  if (work_conserving_ && first_come_ && ready < last_ready_[device]) return false;
  if (!prunes_by_dominance_ || slots_[device].size() > 1) return true;
  const Seconds time = costs_.op_time(op, device);
  for (const Gap& gap : gaps_[device]) {
    const Seconds earlier = std::max(gap.from, ready);
    if (earlier + time <= gap.to && earlier < start) return false;
  }
  return true;
}

void ScheduleTree::append(OpId op, DeviceId device, Undo& undo) {
  const std::uint32_t slot = first_slot(device);
  Seconds& free = slots_[device][slot];
  undo = {slot, free, now_, last_idle_[device], last_ready_[device], sum_of_starts_, makespan_, last_op_, false};
  const Seconds ready = inputs_at(op, device);
  const Seconds start = std::max(free, ready);
  if (start > free) {
    undo.made_gap = true;
    gaps_[device].push_back({free, start});
    last_idle_[device] = start;
  }
  last_ready_[device] = ready;
  now_ = start_[op] = start;
  free = end_[op] = start + costs_.op_time(op, device);
  sum_of_starts_ += start;
  makespan_ = std::max(makespan_, end_[op]);
  last_op_ = op;
  device_[op] = device;
  scheduled_[op] = true;
  ++load_[device];
  resident_[device] += graph_.parameter_bytes(op);
  sequence_.push_back(op);
  for (const TensorId tensor : graph_.inputs(op)) --readers_left_[graph_.producer(tensor)];
  for (const TensorId tensor : graph_.outputs(op))
    for (const OpId consumer : graph_.consumers(tensor)) --pending_[consumer];
}

void ScheduleTree::remove(const Undo& undo) {
  const OpId op = sequence_.back();
  const DeviceId device = device_[op];
  sequence_.pop_back();
  for (const TensorId tensor : graph_.inputs(op)) ++readers_left_[graph_.producer(tensor)];
  for (const TensorId tensor : graph_.outputs(op))
    for (const OpId consumer : graph_.consumers(tensor)) ++pending_[consumer];
  resident_[device] -= graph_.parameter_bytes(op);
  --load_[device];
  scheduled_[op] = false;
  if (undo.made_gap) gaps_[device].pop_back();
  slots_[device][undo.slot] = undo.slot_free;
  now_ = undo.now;
  last_idle_[device] = undo.last_idle;
  last_ready_[device] = undo.last_ready;
  sum_of_starts_ = undo.sum_of_starts;
  makespan_ = undo.makespan;
  last_op_ = undo.last_op;
}

// No completion of the partial schedule ends earlier: each op left ends as early as it can on its best
// device, with its tail after it; and the work left, from now on, fits into the slots before its tails.
Seconds ScheduleTree::bound() {
  Seconds result = makespan_;
  for (const OpId op : sequence_)
    if (readers_left_[op] > 0) result = std::max(result, end_[op] + tail_[op]);
  for (const OpId op : graph_.topological_order()) {
    if (scheduled_[op]) continue;
    Seconds best = Costs::kNever;
    for (const DeviceId device : problem_.devices(op)) {
      Seconds start = std::max({now_, head_[op], slots_[device][first_slot(device)]});
      for (const TensorId tensor : graph_.inputs(op)) {
        const OpId producer = graph_.producer(tensor);
        start = std::max(start, scheduled_[producer]
                                    ? end_[producer] + costs_.transfer_time(tensor, device_[producer], device)
                                    : earliest_end_[producer]);
      }
      best = std::min(best, start + costs_.op_time(op, device));
    }
    earliest_end_[op] = best;
    result = std::max(result, best + tail_[op]);
  }
  // Ops with at least this tail need all their work done before T - tail: pour it over the slots, each from the time
  // it is free; `level` is the earliest time by which they can hold it.
  free_slots_.clear();
  for (const auto& slots : slots_)
    for (const Seconds free : slots) free_slots_.push_back(std::max(free, now_));
  std::sort(free_slots_.begin(), free_slots_.end());
  std::size_t active = 1;
  Seconds level = free_slots_.front();
  for (const OpId op : by_tail_) {
    if (scheduled_[op]) continue;
    Seconds work = fastest_[op];
    for (; active < free_slots_.size(); ++active) {
      const Seconds room = (free_slots_[active] - level) * static_cast<double>(active);
      if (work <= room) break;
      work -= room;
      level = free_slots_[active];
    }
    level += work / static_cast<double>(active);
    result = std::max(result, level + tail_[op]);
  }
  return result;
}

bool ScheduleTree::dominated() {
  if (!prunes_by_dominance_) return false;
  DominanceTable::Node node;
  node.now = now_;
  node.sum_of_starts = sum_of_starts_;
  node.makespan = makespan_;
  node.last_op = last_op_;
  // Ops whose device or end still matters, and the devices they are on in order of first mention.
  std::vector<std::uint32_t> label(slots_.size(), 0);
  std::uint32_t labels = 0;
  std::vector<DeviceId> labelled;
  for (OpId op = 0; op < graph_.op_count(); ++op) {
    if (!scheduled_[op]) continue;
    node.scheduled.push_back(op);
    bool matters = readers_left_[op] > 0 || op == last_op_;
    for (const OpId member : clusters_.of(op)) matters = matters || !scheduled_[member];
    if (!matters) continue;
    std::uint32_t& l = label[device_[op]];
    if (l == 0) {
      l = ++labels;
      labelled.push_back(device_[op]);
    }
    node.interface.push_back(op);
    node.interface.push_back(l);
    node.times.push_back(end_[op]);
  }
  // The other devices differ only by kind and by when they are free.
  std::vector<DeviceId> others;
  for (DeviceId device = 0; device < slots_.size(); ++device)
    if (label[device] == 0) others.push_back(device);
  const auto free_times = [&](DeviceId device) {
    std::vector<Seconds> times = slots_[device];
    std::sort(times.begin(), times.end());
    return times;
  };
  std::stable_sort(others.begin(), others.end(), [&](DeviceId a, DeviceId b) {
    return device_kind_[a] != device_kind_[b] ? device_kind_[a] < device_kind_[b] : free_times(a) < free_times(b);
  });
  labelled.insert(labelled.end(), others.begin(), others.end());
  for (const DeviceId device : labelled) {
    node.interface.push_back(device_kind_[device]);
    for (const Seconds free : free_times(device)) node.times.push_back(free);
  }
  return dominance_.dominated_or_insert(std::move(node));
}

void ScheduleTree::expand(std::size_t depth) {
  auto& children = children_[depth];
  children.clear();
  next_child_[depth] = 0;
  Undo undo;
  for (OpId op = 0; op < graph_.op_count(); ++op) {
    if (scheduled_[op] || pending_[op] > 0) continue;
    for (const DeviceId device : problem_.devices(op)) {
      if (!device_open(op, device)) continue;
      const Seconds ready = inputs_at(op, device);
      const Seconds start = std::max(ready, slots_[device][first_slot(device)]);
      if (!legal(op, device, ready, start)) continue;
      append(op, device, undo);
      const Seconds value = bound();
      remove(undo);
      if (!record_.beats(value)) children.push_back({op, device, value, start});
    }
  }
  std::stable_sort(children.begin(), children.end(), [&](const Child& a, const Child& b) {
    if (a.bound != b.bound) return a.bound < b.bound;
    if (a.start != b.start) return a.start < b.start;
    return tail_[a.op] > tail_[b.op];
  });
}

void ScheduleTree::offer_leaf() {
  Placement placement;
  placement.device_of_op = device_;
  if (problem_.rules().discipline != Discipline::fifo) placement.priority = ranks_from_order(sequence_);
  record_.evaluate(placement);
}

Seconds ScheduleTree::search() {
  const std::size_t n = graph_.op_count();
  std::size_t depth = 0;
  expand(0);
  while (true) {
    if (next_child_[depth] == children_[depth].size()) {
      if (depth == 0) return record_.makespan();
      remove(undo_[--depth]);
      continue;
    }
    if (record_.exhausted()) return least_open_bound(children_, next_child_, depth, record_.makespan());
    record_.count();
    const Child child = children_[depth][next_child_[depth]++];
    if (record_.beats(child.bound)) continue;
    append(child.op, child.device, undo_[depth]);
    if (depth + 1 == n) {
      offer_leaf();
      remove(undo_[depth]);
    } else if (dominated()) {
      remove(undo_[depth]);
    } else {
      expand(++depth);
    }
  }
}

}  // namespace

Seconds search_schedules(const Problem& problem, const Consequences& known, SearchRecord& record) {
  return ScheduleTree(problem, known, record).search();
}

}  // namespace doppler
