// A node assigns the clusters whose first op (in topological order) comes early. Its bound: with the devices
// of these ops known, each starts no earlier than its inputs are on its device; and what one device runs
// takes at least the preemptive bound of its ops between these starts and their tails. Ops without a device
// yet add nothing but their tails. This is weaker than the bound of schedule_tree.cpp, but needs to know
// nothing of the discipline.
#include "doppler/place/exact/assignment_tree.h"

#include <algorithm>

#include "doppler/bounds/relaxation.h"

namespace doppler {
namespace {

constexpr DeviceId kNoDevice = std::numeric_limits<DeviceId>::max();

class AssignmentTree {
 public:
  AssignmentTree(const Problem& problem, const Consequences& known, SearchRecord& record)
      : problem_(problem),
        tail_(known.tail),
        clusters_(known.cluster),
        record_(record),
        device_kind_(interchangeable_devices(problem)),
        device_of_op_(problem.op_count(), kNoDevice),
        end_(problem.op_count()),
        load_(problem.device_count(), 0),
        tasks_(problem.device_count()) {
    std::vector<char> seen(problem.op_count(), false);
    for (const OpId op : problem.graph().topological_order()) {
      if (!seen[op]) leaders_.push_back(op);
      for (const OpId member : clusters_.of(op)) seen[member] = true;
    }
    children_.resize(leaders_.size());
    next_child_.resize(leaders_.size(), 0);
  }

  Seconds search();

 private:
  struct Child {
    DeviceId device;
    Seconds bound;
  };
  void assign(OpId leader, DeviceId device);
  void expand(std::size_t depth);
  Seconds bound();

  const Problem& problem_;
  const std::vector<Seconds>& tail_;
  const ClusterMembers clusters_;
  SearchRecord& record_;
  std::vector<std::uint32_t> device_kind_;
  std::vector<OpId> leaders_;  // one op per cluster
  std::vector<DeviceId> device_of_op_;
  std::vector<Seconds> end_;
  std::vector<std::uint32_t> load_;  // clusters per device
  std::vector<std::vector<HeadTailWork>> tasks_;
  std::vector<std::vector<Child>> children_;
  std::vector<std::size_t> next_child_;
};

// kNoDevice takes the cluster back.
void AssignmentTree::assign(OpId leader, DeviceId device) {
  if (device == kNoDevice)
    --load_[device_of_op_[leader]];
  else
    ++load_[device];
  for (const OpId member : clusters_.of(leader)) device_of_op_[member] = device;
}

Seconds AssignmentTree::bound() {
  const Graph& graph = problem_.graph();
  const Costs& costs = problem_.costs();
  for (auto& tasks : tasks_) tasks.clear();
  Seconds result = 0;
  for (const OpId op : graph.topological_order()) {
    const DeviceId device = device_of_op_[op];
    Seconds start = 0;
    for (const TensorId tensor : graph.inputs(op)) {
      const OpId producer = graph.producer(tensor);
      const bool known = device != kNoDevice && device_of_op_[producer] != kNoDevice;
      start =
          std::max(start, end_[producer] + (known ? costs.transfer_time(tensor, device_of_op_[producer], device) : 0));
    }
    const Seconds time = device != kNoDevice ? costs.op_time(op, device) : costs.fastest(op);
    end_[op] = start + time;
    result = std::max(result, end_[op] + tail_[op]);
    if (device != kNoDevice) tasks_[device].push_back({start, time, tail_[op]});
  }
  for (DeviceId device = 0; device < tasks_.size(); ++device)
    result = std::max(result, preemptive_bound(tasks_[device], problem_.machine().device(device).slots));
  return result;
}

void AssignmentTree::expand(std::size_t depth) {
  auto& children = children_[depth];
  children.clear();
  next_child_[depth] = 0;
  for (const DeviceId device : problem_.devices(leaders_[depth])) {
    // Of the unused devices of a kind only the first.
    bool open = true;
    for (const OpId member : clusters_.of(leaders_[depth])) open = open && problem_.allows(member, device);
    for (DeviceId other = 0; other < device && load_[device] == 0; ++other)
      open = open && !(load_[other] == 0 && device_kind_[other] == device_kind_[device]);
    if (!open) continue;
    assign(leaders_[depth], device);
    const Seconds value = bound();
    assign(leaders_[depth], kNoDevice);
    if (!record_.beats(value)) children.push_back({device, value});
  }
  std::stable_sort(children.begin(), children.end(), [](const Child& a, const Child& b) { return a.bound < b.bound; });
}

Seconds AssignmentTree::search() {
  std::size_t depth = 0;
  expand(0);
  while (true) {
    if (next_child_[depth] == children_[depth].size()) {
      if (depth == 0) return record_.makespan();
      assign(leaders_[--depth], kNoDevice);
      continue;
    }
    if (record_.exhausted()) return least_open_bound(children_, next_child_, depth, record_.makespan());
    record_.count();
    const Child child = children_[depth][next_child_[depth]++];
    if (record_.beats(child.bound)) continue;
    assign(leaders_[depth], child.device);
    if (depth + 1 < leaders_.size()) {
      expand(++depth);
      continue;
    }
    Placement placement;
    placement.device_of_op = device_of_op_;
    record_.evaluate(placement);
    assign(leaders_[depth], kNoDevice);
  }
}

}  // namespace

Seconds search_assignments(const Problem& problem, const Consequences& known, SearchRecord& record) {
  return AssignmentTree(problem, known, record).search();
}

}  // namespace doppler
