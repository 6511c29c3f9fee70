#include "doppler/time_account.h"

#include <algorithm>
#include <unordered_map>

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
    const Timeline::Transfer* last = last_arrival(execution);
    const Seconds queueing = last == nullptr ? 0 : overlap(from, ready, last->queued, last->start);
    time.channel += queueing;
    time.data += ready - from - queueing;
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
  for (DeviceId device = 0; device < problem.device_count(); ++device)
    result[device].done = timeline.makespan - free_at[device];
  return result;
}

}  // namespace doppler
