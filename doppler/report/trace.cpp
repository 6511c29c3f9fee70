#include "doppler/report/trace.h"

#include <functional>
#include <iterator>
#include <map>
#include <queue>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "doppler/graph.h"
#include "doppler/sim/memory.h"

namespace doppler {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Overlapping slices of one thread are drawn as if nested, so each transfer gets the first lane that is free.
class Lanes {
 public:
  std::uint32_t take(Seconds start, Seconds end) {
    std::uint32_t lane = count_;
    if (!free_at_.empty() && free_at_.top().first <= start) {
      lane = free_at_.top().second;
      free_at_.pop();
    } else {
      ++count_;
    }
    free_at_.emplace(end, lane);
    return lane;
  }

 private:
  using Entry = std::pair<Seconds, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> free_at_;
  std::uint32_t count_ = 0;
};

class TraceWriter {
 public:
  TraceWriter(const Timeline& timeline, const Problem& problem)
      : timeline_(timeline),
        problem_(problem),
        graph_(problem.graph()),
        machine_(problem.machine()),
        microseconds_(graph_.unitless() ? 1.0 : 1e6) {}

  std::string write() {
    add("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    for (DeviceId id = 0; id < machine_.device_count(); ++id) name_device(id);
    write_executions();
    for (const Timeline::Transfer& move : timeline_.transfers) write_transfer(move);
    write_memory();
    add("\n]}}\n");
    return std::move(text_);
  }

 private:
  struct Point {
    DeviceId device;
    std::uint32_t thread;
    Seconds time;
  };

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    text_ += first_ ? "\n" : ",\n";
    first_ = false;
    add(format, std::forward<Args>(args)...);
  }

  void name_thread(DeviceId device, std::uint32_t thread, const std::string& name) {
    event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", device, thread, quoted(name));
    event(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", device, thread,
          thread);
  }

  void name_device(DeviceId id) {
    const Device& device = machine_.device(id);
    event(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", id, quoted(device.name));
    event(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})", id, id);
    for (unsigned slot = 0; slot < device.slots; ++slot) name_thread(id, slot, fmt::format("slot {}", slot));
  }

  void write_executions() {
    run_of_op_.resize(graph_.op_count(), nullptr);
    for (const Timeline::Execution& run : timeline_.executions) {
      run_of_op_[run.op] = &run;
      event(
          R"({{"ph":"X","cat":"op","name":{},"pid":{},"tid":{},"ts":{:.4f},"dur":{:.4f},"args":{{"kind":{},"waited":{:.4f}}}}})",
          quoted(graph_.name(run.op)), run.device, run.slot, run.start * microseconds_,
          (run.end - run.start) * microseconds_, quoted(graph_.kind(run.op)), (run.start - run.ready) * microseconds_);
    }
  }

  // The thread of lane `lane` from `src`: numbered after the slots in order of first use.
  std::uint32_t thread_of_lane(DeviceId src, DeviceId dst, std::uint32_t lane) {
    const auto [entry, added] = lane_threads_.try_emplace({dst, src, lane}, 0);
    if (added) {
      entry->second = machine_.device(dst).slots + threads_of_links_[dst]++;
      name_thread(dst, entry->second, fmt::format("from {}", machine_.device(src).name));
    }
    return entry->second;
  }

  void write_transfer(const Timeline::Transfer& move) {
    const std::uint32_t lane = lanes_[{move.dst, move.src}].take(move.start, move.end);
    const Point here{move.dst, thread_of_lane(move.src, move.dst, lane), move.start};
    const OpId producer = graph_.producer(move.tensor);
    event(
        R"({{"ph":"X","cat":"transfer","name":{},"pid":{},"tid":{},"ts":{:.4f},"dur":{:.4f},"args":{{"bytes":{},"waited":{:.4f}}}}})",
        quoted(graph_.name(producer)), here.device, here.thread, move.start * microseconds_,
        (move.end - move.start) * microseconds_, graph_.bytes(move.tensor), (move.start - move.queued) * microseconds_);
    const Timeline::Execution* source = run_of_op_[producer];
    if (source != nullptr) arrow({source->device, source->slot, source->start}, here);
    for (const OpId consumer : graph_.consumers(move.tensor)) {
      const Timeline::Execution* run = run_of_op_[consumer];
      if (run != nullptr && run->device == move.dst) arrow(here, {run->device, run->slot, run->start});
    }
  }

  void write_memory() {
    for (const MemoryStep& step : memory_over_time(problem_, timeline_))
      event(R"({{"ph":"C","name":"memory","pid":{},"ts":{:.4f},"args":{{"bytes":{}}}}})", step.device,
            step.time * microseconds_, step.used);
  }

  // Arrows attach to the slice that encloses their time on their thread, so both ends use the start of a
  // slice.
  void arrow(const Point& from, const Point& to) {
    event(R"({{"ph":"s","cat":"data","name":"data","id":{},"pid":{},"tid":{},"ts":{:.4f}}})", arrows_, from.device,
          from.thread, from.time * microseconds_);
    event(R"({{"ph":"f","bp":"e","cat":"data","name":"data","id":{},"pid":{},"tid":{},"ts":{:.4f}}})", arrows_++,
          to.device, to.thread, to.time * microseconds_);
  }

  const Timeline& timeline_;
  const Problem& problem_;
  const Graph& graph_;
  const Machine& machine_;
  double microseconds_;  // per unit of the timeline
  std::string text_;
  bool first_ = true;
  std::size_t arrows_ = 0;
  std::vector<const Timeline::Execution*> run_of_op_;
  std::map<std::pair<DeviceId, DeviceId>, Lanes> lanes_;
  std::map<std::tuple<DeviceId, DeviceId, std::uint32_t>, std::uint32_t> lane_threads_;
  std::map<DeviceId, std::uint32_t> threads_of_links_;
};

}  // namespace

std::string timeline_to_trace(const Timeline& timeline, const Problem& problem) {
  return TraceWriter(timeline, problem).write();
}

}  // namespace doppler
