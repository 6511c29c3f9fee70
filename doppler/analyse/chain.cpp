#include "doppler/analyse/chain.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "doppler/base/error.h"

namespace doppler {
namespace {

constexpr std::size_t kNoStep = std::numeric_limits<std::size_t>::max();
// Sums in another order differ by this share of the makespan at most.
constexpr double kSameInstant = 1e-9;

// Finds what every execution and transfer waited for. Predecessors always come earlier in the lists of the timeline,
// so that a walk over them ends.
class ChainFinder {
 public:
  ChainFinder(const Problem& problem, const Timeline& timeline)
      : problem_(problem),
        graph_(problem.graph()),
        run_(timeline),
        near_(kSameInstant * timeline.makespan),
        execution_of_(problem.op_count(), kNoStep),
        before_in_slot_(timeline.executions.size(), kNoStep),
        before_in_channel_(timeline.transfers.size(), kNoStep) {
    std::map<std::pair<DeviceId, std::uint32_t>, std::size_t> last_in_slot;
    for (std::size_t i = 0; i < run_.executions.size(); ++i) {
      const Timeline::Execution& execution = run_.executions[i];
      execution_of_[execution.op] = i;
      const auto [last, first] = last_in_slot.try_emplace({execution.device, execution.slot}, i);
      if (!first) before_in_slot_[i] = std::exchange(last->second, i);
    }
    std::map<std::tuple<DeviceId, DeviceId, std::uint32_t>, std::size_t> last_in_channel;
    for (std::size_t i = 0; i < run_.transfers.size(); ++i) {
      const Timeline::Transfer& transfer = run_.transfers[i];
      arrival_[key(transfer.tensor, transfer.dst)] = i;
      const auto [last, first] = last_in_channel.try_emplace({transfer.src, transfer.dst, transfer.channel}, i);
      if (!first) before_in_channel_[i] = std::exchange(last->second, i);
    }
  }

  std::vector<ChainStep> find() {
    if (run_.executions.empty()) return {};
    std::size_t last = 0;
    for (std::size_t i = 0; i < run_.executions.size(); ++i)
      if (run_.executions[i].end > run_.executions[last].end) last = i;
    Next next{false, last};
    const std::size_t most = run_.executions.size() + run_.transfers.size();
    while (next.index != kNoStep && chain_.size() < most)
      next = next.is_transfer ? add_transfer(next.index) : add_execution(next.index);
    std::reverse(chain_.begin(), chain_.end());
    return std::move(chain_);
  }

 private:
  using Waits = ChainStep::Waits;
  struct Next {
    bool is_transfer = false;
    std::size_t index = kNoStep;
  };

  Next add_execution(std::size_t index) {
    const Timeline::Execution& run = run_.executions[index];
    chain_.push_back({.op = run.op, .src = run.device, .dst = run.device, .start = run.start, .end = run.end});
    if (run.start <= near_) return {};
    if (run.start > run.ready + near_) {
      const std::size_t before = before_in_slot_[index];
      if (before != kNoStep && same(run_.executions[before].end, run.start))
        return waiting(Waits::device, {false, before});
      if (const std::size_t copy = copy_ending_at(run.device, run.start); copy != kNoStep)
        return waiting(Waits::device, {true, copy});
      if (problem_.rules().bulk_synchronous)
        for (std::size_t other = index; other-- > 0;)
          if (same(run_.executions[other].end, run.start)) return waiting(Waits::barrier, {false, other});
    }
    return last_input(run);
  }

  Next add_transfer(std::size_t index) {
    const Timeline::Transfer& transfer = run_.transfers[index];
    chain_.push_back({.is_transfer = true,
                      .op = graph_.producer(transfer.tensor),
                      .tensor = transfer.tensor,
                      .src = transfer.src,
                      .dst = transfer.dst,
                      .start = transfer.start,
                      .end = transfer.end});
    if (transfer.start > transfer.queued + near_) {
      const std::size_t before = before_in_channel_[index];
      if (before != kNoStep && same(run_.transfers[before].end, transfer.start))
        return waiting(Waits::channel, {true, before});
      if (problem_.rules().links == Links::receiver) {
        for (std::size_t i = run_.executions.size(); i-- > 0;)
          if (run_.executions[i].device == transfer.dst && same(run_.executions[i].end, transfer.start) &&
              run_.executions[i].start < transfer.start)
            return waiting(Waits::device, {false, i});
      }
    }
    return waiting(Waits::data, {false, execution_of_[graph_.producer(transfer.tensor)]});
  }

  // The input of an op that came last.
  Next last_input(const Timeline::Execution& run) {
    Next last;
    Seconds latest = -1;
    for (const TensorId tensor : graph_.inputs(run.op)) {
      const auto moved = arrival_.find(key(tensor, run.device));
      const std::size_t producer = execution_of_[graph_.producer(tensor)];
      const Seconds arrival =
          moved != arrival_.end() ? run_.transfers[moved->second].end : run_.executions[producer].end;
      if (arrival <= latest) continue;
      latest = arrival;
      last = moved != arrival_.end() ? Next{true, moved->second} : Next{false, producer};
    }
    if (last.index == kNoStep) return last;
    return waiting(last.is_transfer ? Waits::transfer : Waits::data, last);
  }

  // Where receivers copy: the transfer to a device that ended just then.
  std::size_t copy_ending_at(DeviceId device, Seconds time) const {
    if (problem_.rules().links != Links::receiver) return kNoStep;
    for (std::size_t i = run_.transfers.size(); i-- > 0;)
      if (run_.transfers[i].dst == device && same(run_.transfers[i].end, time) && run_.transfers[i].start < time)
        return i;
    return kNoStep;
  }

  Next waiting(Waits waits, Next next) {
    chain_.back().waits = waits;
    return next;
  }
  bool same(Seconds a, Seconds b) const { return std::abs(a - b) <= near_; }
  std::uint64_t key(TensorId tensor, DeviceId dst) const {
    return std::uint64_t{tensor} * problem_.device_count() + dst;
  }

  const Problem& problem_;
  const Graph& graph_;
  const Timeline& run_;
  Seconds near_;
  std::vector<std::size_t> execution_of_, before_in_slot_, before_in_channel_;
  std::unordered_map<std::uint64_t, std::size_t> arrival_;  // the transfer by tensor and destination
  std::vector<ChainStep> chain_;                            // last first
};

}  // namespace

std::string_view to_string(ChainStep::Waits waits) {
  constexpr std::string_view kNames[] = {"nothing", "data", "transfer", "device", "channel", "barrier"};
  return kNames[static_cast<int>(waits)];
}

std::vector<ChainStep> critical_chain(const Problem& problem, const Timeline& timeline) {
  return ChainFinder(problem, timeline).find();
}

}  // namespace doppler
