#include "doppler/time_account.h"

#include <algorithm>
#include <unordered_map>

#include "doppler/base/error.h"

namespace doppler {
namespace {

Seconds overlap(Seconds a, Seconds b, Seconds c, Seconds d) { return std::max(0.0, std::min(b, d) - std::max(a, c)); }

class Accountant {
 public:
  Accountant(const Problem& problem, const Timeline& timeline)
      : graph_(problem.graph()), devices_(problem.device_count()), next_copy_(devices_, 0) {
    for (const Timeline::Transfer& transfer : timeline.transfers)
      transfer_[key(transfer.tensor, transfer.dst)] = &transfer;
    if (problem.rules().links != Links::receiver) return;
    copies_.resize(devices_);
    for (const Timeline::Transfer& transfer : timeline.transfers) copies_[transfer.dst].push_back(&transfer);
  }

  // The device was idle from `from` until `execution` began.
  void charge_gap(Seconds from, const Timeline::Execution& execution, DeviceTime& time) {
    const Seconds ready = std::clamp(execution.ready, from, execution.start);
    if (!copies_.empty()) return charge_copying_gap(from, ready, execution, time);
    time.memory += execution.start - ready;
    const auto [queued, sent] = queueing(from, ready, execution);
    time.channel += sent - queued;
    time.data += ready - from - (sent - queued);
  }
  // The same as gaps of one cause each, by time.
  void split_gap(Seconds from, const Timeline::Execution& execution, std::vector<IdleGap>& gaps) const {
    using Waits = IdleGap::Waits;
    const Seconds ready = std::clamp(execution.ready, from, execution.start);
    const auto [queued, sent] = queueing(from, ready, execution);
    const auto add = [&](Seconds start, Seconds end, Waits waits) {
      if (end > start) gaps.push_back({execution.device, execution.slot, start, end, waits});
    };
    add(from, queued, Waits::data);
    add(queued, sent, Waits::channel);
    add(sent, ready, Waits::data);
    add(ready, execution.start, Waits::memory);
  }

 private:
  // The same where the device copies for itself: then no link can be busy.
  void charge_copying_gap(Seconds from, Seconds ready, const Timeline::Execution& execution, DeviceTime& time) {
    Seconds before = 0, after = 0;
    std::size_t& next = next_copy_[execution.device];
    const std::vector<const Timeline::Transfer*>& copies = copies_[execution.device];
    for (; next < copies.size() && copies[next]->start < execution.start; ++next) {
      before += overlap(from, ready, copies[next]->start, copies[next]->end);
      after += overlap(ready, execution.start, copies[next]->start, copies[next]->end);
    }
    time.copying += before + after;
    time.data += ready - from - before;
    time.memory += execution.start - ready - after;
  }

  // The part of a gap in which the input that came last stood in front of a busy link; of no length if it did not.
  std::pair<Seconds, Seconds> queueing(Seconds from, Seconds ready, const Timeline::Execution& execution) const {
    const Timeline::Transfer* last = last_arrival(execution);
    if (last == nullptr || overlap(from, ready, last->queued, last->start) == 0) return {from, from};
    return {std::max(from, last->queued), std::min(ready, last->start)};
  }

  std::uint64_t key(TensorId tensor, DeviceId dst) const { return std::uint64_t{tensor} * devices_ + dst; }

  const Timeline::Transfer* last_arrival(const Timeline::Execution& execution) const {
    const Timeline::Transfer* last = nullptr;
    for (const TensorId tensor : graph_.inputs(execution.op)) {
      const auto found = transfer_.find(key(tensor, execution.device));
      if (found != transfer_.end() && (last == nullptr || found->second->end > last->end)) last = found->second;
    }
    return last;
  }

  const Graph& graph_;
  std::uint64_t devices_;
  std::vector<std::vector<const Timeline::Transfer*>> copies_;  // by receiver, if receivers copy; by start
  std::vector<std::size_t> next_copy_;
  std::unordered_map<std::uint64_t, const Timeline::Transfer*> transfer_;
};

}  // namespace

std::vector<DeviceTime> account_time(const Problem& problem, const Timeline& timeline) {
  Accountant accountant(problem, timeline);
  std::vector<DeviceTime> result(problem.device_count());
  std::vector<Seconds> free_at(problem.device_count(), 0);
  for (const Timeline::Execution& execution : timeline.executions) {
    DeviceTime& time = result[execution.device];
    accountant.charge_gap(free_at[execution.device], execution, time);
    time.busy += execution.end - execution.start;
    free_at[execution.device] = execution.end;
  }
  for (DeviceId device = 0; device < problem.device_count(); ++device) {
    DeviceTime& time = result[device];
    time.done = timeline.makespan - free_at[device];
    if (timeline.others.empty()) continue;
    time.others = std::min(timeline.others[device], time.memory + time.busy);
    const Seconds unexplained = std::min(time.others, time.memory);
    time.memory -= unexplained;
    time.busy -= time.others - unexplained;
  }
  return result;
}

std::string_view to_string(IdleGap::Waits waits) {
  switch (waits) {
    case IdleGap::Waits::data:
      return "data";
    case IdleGap::Waits::channel:
      return "channel";
    case IdleGap::Waits::memory:
      return "memory";
    case IdleGap::Waits::nothing:
      return "done";
  }
  throw InternalError("unknown cause of a gap");
}

std::vector<IdleGap> idle_gaps(const Problem& problem, const Timeline& timeline) {
  const Accountant accountant(problem, timeline);
  std::vector<IdleGap> gaps;
  std::vector<std::vector<Seconds>> free_at(problem.device_count());
  for (DeviceId device = 0; device < problem.device_count(); ++device)
    free_at[device].assign(problem.machine().device(device).slots, 0.0);
  for (const Timeline::Execution& execution : timeline.executions) {
    Seconds& free = free_at[execution.device][execution.slot];
    accountant.split_gap(free, execution, gaps);
    free = execution.end;
  }
  for (DeviceId device = 0; device < problem.device_count(); ++device)
    for (std::uint32_t slot = 0; slot < free_at[device].size(); ++slot)
      if (free_at[device][slot] < timeline.makespan)
        gaps.push_back({device, slot, free_at[device][slot], timeline.makespan, IdleGap::Waits::nothing});
  return gaps;
}

}  // namespace doppler
