#include "doppler/bounds/relaxation.h"

#include <algorithm>

namespace doppler {
namespace {

bool disjoint(std::span<const DeviceId> a, std::span<const DeviceId> b) {
  auto i = a.begin();
  auto j = b.begin();
  while (i != a.end() && j != b.end()) {
    if (*i == *j) return false;
    if (*i < *j)
      ++i;
    else
      ++j;
  }
  return true;
}

// The classes of links between the devices of two ops, looked through once for each pair of lists.
class UsableLinks {
 public:
  explicit UsableLinks(const Problem& problem) : problem_(problem) {}

  // The fastest move between two different devices that the two ops may be on; 0 if they cannot be apart.
  Seconds least_delay(TensorId tensor, OpId src, OpId dst) {
    const Costs& costs = problem_.costs();
    if (costs.link_classes() == 1) return costs.fastest_transfer(tensor);
    Seconds least = Costs::kNever;
    for (const std::uint32_t link_class : between(problem_.devices(src), problem_.devices(dst)))
      least = std::min(least, costs.class_transfer_time(tensor, link_class));
    return least < Costs::kNever ? least : 0;
  }

 private:
  const std::vector<std::uint32_t>& between(std::span<const DeviceId> from, std::span<const DeviceId> to) {
    const auto [entry, added] = classes_.try_emplace({from.data(), to.data()});
    if (!added) return entry->second;
    const Costs& costs = problem_.costs();
    std::vector<char> seen(costs.link_classes(), 0);
    for (const DeviceId a : from)
      for (const DeviceId b : to)
        if (a != b) seen[costs.link_class(a, b)] = 1;
    for (std::uint32_t link_class = 0; link_class < seen.size(); ++link_class)
      if (seen[link_class]) entry->second.push_back(link_class);
    return entry->second;
  }

  const Problem& problem_;
  std::map<std::pair<const DeviceId*, const DeviceId*>, std::vector<std::uint32_t>> classes_;
};

}  // namespace

const std::vector<std::uint32_t>& AllowedClasses::of(OpId op) {
  const auto devices = problem_.devices(op);
  const auto [entry, added] = classes_.try_emplace(devices.data());
  if (!added) return entry->second;
  std::vector<char> seen(problem_.costs().device_classes(), 0);
  for (const DeviceId device : devices) {
    const std::uint32_t device_class = problem_.costs().device_class(device);
    if (!seen[device_class]) entry->second.push_back(device_class);
    seen[device_class] = 1;
  }
  return entry->second;
}

Relaxation relax(const Problem& problem) {
  const Graph& graph = problem.graph();
  const OpId n = graph.op_count();
  Relaxation result;
  AllowedClasses classes(problem);
  UsableLinks links(problem);
  result.work.resize(n);
  result.cluster.resize(n);
  for (OpId op = 0; op < n; ++op) {
    result.work[op] = Costs::kNever;
    for (const std::uint32_t device_class : classes.of(op))
      result.work[op] = std::min(result.work[op], problem.costs().class_time(op, device_class));
    result.cluster[op] = problem.unit(op).front();
  }
  result.device_count = problem.device_count();
  result.total_slots = 0;
  for (DeviceId device = 0; device < problem.device_count(); ++device) {
    const double slots = problem.machine().device(device).slots;
    result.total_slots += slots;
    result.device_slots = std::max(result.device_slots, slots);
  }
  result.order.assign(graph.topological_order().begin(), graph.topological_order().end());

  result.in_begin.assign(n + 1, 0);
  result.out_begin.assign(n + 1, 0);
  for (OpId op = 0; op < n; ++op) {
    for (const TensorId tensor : graph.outputs(op)) {
      for (const OpId consumer : graph.consumers(tensor)) {
        result.out.push_back({consumer, links.least_delay(tensor, op, consumer),
                              disjoint(problem.devices(op), problem.devices(consumer))});
        ++result.in_begin[consumer + 1];
      }
    }
    result.out_begin[op + 1] = static_cast<std::uint32_t>(result.out.size());
  }
  for (OpId op = 0; op < n; ++op) result.in_begin[op + 1] += result.in_begin[op];
  result.in.resize(result.out.size());
  std::vector<std::uint32_t> next(result.in_begin.begin(), result.in_begin.end() - 1);
  for (OpId op = 0; op < n; ++op)
    for (const auto& arc : result.successors(op)) result.in[next[arc.op]++] = {op, arc.delay, arc.crossing};
  return result;
}

Relaxation Relaxation::reversed() const {
  Relaxation result = *this;
  std::swap(result.in, result.out);
  std::swap(result.in_begin, result.out_begin);
  std::reverse(result.order.begin(), result.order.end());
  return result;
}

Seconds preemptive_bound(std::span<HeadTailWork> tasks, double slots) {
  // Time is counted in slot-seconds, so that integers stay integers: the only rounding is in the last
  // division.
  for (HeadTailWork& task : tasks) {
    task.head *= slots;
    task.tail *= slots;
  }
  std::sort(tasks.begin(), tasks.end(), [](const HeadTailWork& a, const HeadTailWork& b) { return a.head < b.head; });
  const auto smaller_tail = [](const HeadTailWork& a, const HeadTailWork& b) { return a.tail < b.tail; };
  // Pending tasks form a heap in the part of `tasks` that has been released.
  Seconds now = 0, bound = 0;
  std::size_t released = 0, heap_end = 0;
  while (released < tasks.size() || heap_end > 0) {
    if (heap_end == 0) now = std::max(now, tasks[released].head);
    while (released < tasks.size() && tasks[released].head <= now) {
      std::swap(tasks[heap_end++], tasks[released++]);
      std::push_heap(tasks.begin(), tasks.begin() + static_cast<std::ptrdiff_t>(heap_end), smaller_tail);
    }
    HeadTailWork& first = tasks[0];
    const Seconds end = now + first.work;
    if (released < tasks.size() && tasks[released].head < end) {
      first.work -= tasks[released].head - now;
      now = tasks[released].head;
      continue;
    }
    now = end;
    bound = std::max(bound, now + first.tail);
    std::pop_heap(tasks.begin(), tasks.begin() + static_cast<std::ptrdiff_t>(heap_end), smaller_tail);
    --heap_end;
  }
  return bound / slots;
}

std::vector<std::uint32_t> interchangeable_devices(const Problem& problem) {
  const Costs& costs = problem.costs();
  const DeviceId devices = problem.device_count();
  const auto same_links = [&](DeviceId a, DeviceId b) {
    for (DeviceId other = 0; other < devices; ++other)
      if (other != a && other != b &&
          (costs.link_class(a, other) != costs.link_class(b, other) ||
           costs.link_class(other, a) != costs.link_class(other, b)))
        return false;
    return costs.link_class(a, b) == costs.link_class(b, a);
  };
  std::map<const DeviceId*, OpId> choices;  // one op for each list of devices
  for (OpId op = 0; op < problem.op_count(); ++op) choices.try_emplace(problem.devices(op).data(), op);
  const auto same_ops = [&](DeviceId a, DeviceId b) {
    return std::all_of(choices.begin(), choices.end(), [&](const auto& choice) {
      return problem.allows(choice.second, a) == problem.allows(choice.second, b);
    });
  };
  std::vector<std::uint32_t> kind(devices);
  std::vector<DeviceId> representative;
  for (DeviceId device = 0; device < devices; ++device) {
    std::uint32_t k = 0;
    while (k < representative.size() && !(costs.device_class(device) == costs.device_class(representative[k]) &&
                                          same_links(device, representative[k]) && same_ops(device, representative[k])))
      ++k;
    if (k == representative.size()) representative.push_back(device);
    kind[device] = k;
  }
  return kind;
}

}  // namespace doppler
