#include "doppler/place/list/etf.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "doppler/graph/levels.h"
#include "doppler/place/list/list_schedule.h"

namespace doppler {
namespace {

// The start of a ready op on a device is max(arrival of its inputs, time the device is available). The
// arrival is fixed once the op is ready and the other only grows, so two heaps per device suffice instead of
// a rescan of all pairs at each step: ops still under way, by arrival; and ops that have arrived, which would
// all start when the device is available, by level. An op moves from the first to the second at most once.
// What was placed elsewhere or no longer fits in memory is dropped when it comes up. O(ops × devices × log)
// altogether.
class EarliestTaskFirst {
 public:
  explicit EarliestTaskFirst(const Problem& problem)
      : problem_(problem),
        level_(levels(problem.graph(), problem.costs().mean_times(), {}).bottom),
        schedule_(problem),
        producers_(problem.graph()),
        pairs_(problem.op_count(), 0),
        placed_(problem.op_count(), 0),
        queues_(problem.device_count()) {}

  Placement run() && {
    producers_.start([&](OpId op) { add(op); });
    for (OpId remaining = problem_.op_count(); remaining > 0; --remaining) place_one();
    return std::move(schedule_).finish(ListSchedule::Order::placed);
  }

 private:
  // Smaller is better in both heaps; the level counts negatively.
  struct Entry {
    Seconds time;  // arrival of the last input
    Seconds minus_level;
    OpId op;
  };
  struct LaterArrival {
    bool operator()(const Entry& a, const Entry& b) const {
      return std::tie(a.time, a.minus_level, a.op) > std::tie(b.time, b.minus_level, b.op);
    }
  };
  struct LowerLevel {
    bool operator()(const Entry& a, const Entry& b) const {
      return std::tie(a.minus_level, a.op) > std::tie(b.minus_level, b.op);
    }
  };
  struct Queues {
    std::priority_queue<Entry, std::vector<Entry>, LaterArrival> under_way;
    std::priority_queue<Entry, std::vector<Entry>, LowerLevel> arrived;
  };

  void add(OpId op) {
    for (const DeviceId device : schedule_.devices(op)) {
      queues_[device].under_way.push({schedule_.arrival(op, device), -level_[op], op});
      ++pairs_[op];
    }
  }

  // Whether the pair is still to be considered. An op that loses its last pair has no device with memory
  // left.
  bool alive(OpId op, DeviceId device) {
    if (placed_[op]) return false;
    const auto devices = schedule_.devices(op);
    if ((devices.size() > 1 || devices.front() == device) && schedule_.fits(op, device)) return true;
    if (--pairs_[op] == 0) homeless_.push_back(op);
    return false;
  }

  template <typename Heap>
  void drop_dead(Heap& heap, DeviceId device) {
    while (!heap.empty() && !alive(heap.top().op, device)) heap.pop();
  }

  // The best pair of one device, with its start time; none if nothing is ready for it.
  std::optional<Entry> best_on(DeviceId device) {
    auto& [under_way, arrived] = queues_[device];
    const Seconds available = schedule_.available(device);
    while (!under_way.empty() && under_way.top().time <= available) {
      arrived.push(under_way.top());
      under_way.pop();
    }
    drop_dead(arrived, device);
    if (!arrived.empty()) return Entry{available, arrived.top().minus_level, arrived.top().op};
    drop_dead(under_way, device);
    if (!under_way.empty()) return under_way.top();
    return std::nullopt;
  }

  void place_one() {
    std::optional<Entry> best;
    DeviceId best_device = 0;
    for (DeviceId device = 0; device < problem_.device_count(); ++device) {
      const auto entry = best_on(device);
      if (!entry || (best && !LaterArrival()(*best, *entry))) continue;
      best = entry;
      best_device = device;
    }
    if (homeless_.empty()) {
      const bool lost_pairs = pairs_[best->op] < schedule_.devices(best->op).size();
      place(best->op, best_device, lost_pairs ? Cause::memory : Cause::earliest_start);
    } else {  // at once: what it delays does not get better by waiting
      const OpId op = homeless_.back();
      homeless_.pop_back();
      const auto choice = schedule_.choose(op, [&](DeviceId d) { return schedule_.appended_start(op, d); });
      place(op, choice.device, Cause::memory);
    }
  }

  void place(OpId op, DeviceId device, Cause cause) {
    placed_[op] = 1;
    schedule_.place(op, device, schedule_.appended_start(op, device), cause);
    producers_.placed(op, [&](OpId consumer) { add(consumer); });
  }

  const Problem& problem_;
  const std::vector<Seconds> level_;  // static: no transfers
  ListSchedule schedule_;
  ReadyCounter producers_;
  std::vector<DeviceId> pairs_;  // per ready op: devices it is still queued for
  std::vector<char> placed_;
  std::vector<Queues> queues_;
  std::vector<OpId> homeless_;
};

}  // namespace

Proposal etf(const Problem& problem, Objective& objective, const MethodOptions&) {
  return fit_in_memory(objective, {EarliestTaskFirst(problem).run()});
}

}  // namespace doppler
