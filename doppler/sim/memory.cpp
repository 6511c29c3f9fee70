#include "doppler/sim/memory.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace doppler {
namespace {

constexpr Seconds kForever = std::numeric_limits<Seconds>::infinity();

struct Event {
  Seconds time;
  DeviceId device;
  bool takes;  // otherwise releases
  Bytes bytes;
  OpId op;  // who is to blame if it does not fit
};

// Life of one tensor: on its producer's device and on each destination. What is handed over stays where it was made.
void add_tensor_events(const Problem& problem, TensorId tensor,
                       const std::vector<const Timeline::Execution*>& run_of_op,
                       const std::vector<Timeline::Transfer>& transfers, std::span<const std::uint32_t> moves,
                       std::vector<Event>& events) {
  const Graph& graph = problem.graph();
  const bool stays = problem.rules().links == Links::shared;
  const Bytes bytes = graph.bytes(tensor);
  if (bytes == 0) return;
  const OpId producer = graph.producer(tensor);
  const Timeline::Execution& produced = *run_of_op[producer];
  const auto last_use = [&](DeviceId device, Seconds at_least) {
    for (const OpId consumer : graph.consumers(tensor))
      if (run_of_op[consumer]->device == device) at_least = std::max(at_least, run_of_op[consumer]->end);
    return at_least;
  };
  // A life of no length takes no memory: its release would be counted before it.
  const auto live = [&](DeviceId device, Seconds from, Seconds to) {
    if (from == to) return;
    events.push_back({from, device, true, bytes, producer});
    if (to < kForever) events.push_back({to, device, false, bytes, producer});
  };
  Seconds released = graph.consumers(tensor).empty() ? kForever : last_use(produced.device, produced.end);
  for (const std::uint32_t index : moves) {
    const Timeline::Transfer& move = transfers[index];
    released = std::max(released, stays ? last_use(move.dst, move.end) : move.end);
    if (!stays) live(move.dst, move.start, last_use(move.dst, move.end));
  }
  live(produced.device, produced.start, released);
}

// Everything that takes or releases memory while the run goes on, by time.
std::vector<Event> events_of(const Problem& problem, const Timeline& timeline,
                             const std::vector<const Timeline::Execution*>& run_of_op) {
  const Graph& graph = problem.graph();
  // Transfers by tensor, a counting sort.
  std::vector<std::uint32_t> first(std::size_t{graph.tensor_count()} + 1, 0), moves(timeline.transfers.size());
  for (const Timeline::Transfer& transfer : timeline.transfers) ++first[transfer.tensor];
  std::partial_sum(first.begin(), first.end(), first.begin());
  for (std::size_t i = moves.size(); i-- > 0;)
    moves[--first[timeline.transfers[i].tensor]] = static_cast<std::uint32_t>(i);
  std::vector<Event> events;
  events.reserve(2 * (graph.tensor_count() + moves.size()));
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor)
    add_tensor_events(problem, tensor, run_of_op, timeline.transfers,
                      std::span(moves).subspan(first[tensor], first[tensor + 1] - first[tensor]), events);
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.time, a.takes, a.device, a.op) < std::tie(b.time, b.takes, b.device, b.op);
  });
  return events;
}

}  // namespace

bool surely_fits(const Problem& problem, std::span<const DeviceId> device_of_op) {
  if (!problem.memory_limited()) return true;
  const Graph& graph = problem.graph();
  std::vector<Bytes> left(problem.device_count());
  for (DeviceId id = 0; id < problem.device_count(); ++id) {
    const Bytes capacity = problem.machine().device(id).memory;
    left[id] = capacity > 0 ? capacity : std::numeric_limits<Bytes>::max();
  }
  const auto take = [&](DeviceId device, Bytes bytes) {
    const bool fits = bytes <= left[device];
    left[device] -= fits ? bytes : 0;
    return fits;
  };
  std::vector<TensorId> last_seen(problem.device_count(), std::numeric_limits<TensorId>::max());
  for (OpId op = 0; op < graph.op_count(); ++op) {
    if (!take(device_of_op[op], graph.parameter_bytes(op))) return false;
    for (const TensorId tensor : graph.outputs(op)) {
      last_seen[device_of_op[op]] = tensor;
      if (!take(device_of_op[op], graph.bytes(tensor))) return false;
      for (const OpId consumer : graph.consumers(tensor)) {
        const DeviceId device = device_of_op[consumer];
        if (last_seen[device] == tensor) continue;
        last_seen[device] = tensor;
        if (!take(device, graph.bytes(tensor))) return false;
      }
    }
  }
  return true;
}

void account_memory(const Problem& problem, Timeline& timeline) {
  const Graph& graph = problem.graph();
  const DeviceId devices = problem.device_count();
  std::vector<const Timeline::Execution*> run_of_op(graph.op_count(), nullptr);
  std::vector<Bytes> used(devices, 0);
  timeline.busy.assign(devices, 0.0);
  for (const Timeline::Execution& execution : timeline.executions) {
    run_of_op[execution.op] = &execution;
    timeline.busy[execution.device] += execution.end - execution.start;
    used[execution.device] += graph.parameter_bytes(execution.op);
  }
  timeline.overflow.reset();
  const auto check = [&](DeviceId device, OpId op) {
    const Bytes capacity = problem.machine().device(device).memory;
    if (capacity > 0 && used[device] > capacity && !timeline.overflow)
      timeline.overflow = Timeline::Overflow{op, device, used[device], capacity};
  };
  for (const Timeline::Execution& execution : timeline.executions)
    if (graph.parameter_bytes(execution.op) > 0) check(execution.device, execution.op);
  timeline.peak_memory = used;

  for (const Event& event : events_of(problem, timeline, run_of_op)) {
    if (!event.takes) {
      used[event.device] -= event.bytes;
      continue;
    }
    used[event.device] += event.bytes;
    timeline.peak_memory[event.device] = std::max(timeline.peak_memory[event.device], used[event.device]);
    check(event.device, event.op);
  }
}

std::vector<MemoryStep> memory_over_time(const Problem& problem, const Timeline& timeline) {
  const Graph& graph = problem.graph();
  std::vector<const Timeline::Execution*> run_of_op(graph.op_count(), nullptr);
  std::vector<Bytes> used(problem.device_count(), 0);
  for (const Timeline::Execution& execution : timeline.executions) {
    run_of_op[execution.op] = &execution;
    used[execution.device] += graph.parameter_bytes(execution.op);
  }
  std::vector<MemoryStep> steps;
  for (DeviceId device = 0; device < used.size(); ++device) steps.push_back({0, device, used[device]});
  for (const Event& event : events_of(problem, timeline, run_of_op)) {
    used[event.device] += event.takes ? event.bytes : -event.bytes;
    steps.push_back({event.time, event.device, used[event.device]});
  }
  return steps;
}

}  // namespace doppler
