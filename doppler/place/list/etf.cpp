#include "doppler/place/list/etf.h"

#include <algorithm>
#include <tuple>

#include "doppler/bounds/relaxation.h"
#include "doppler/graph/levels.h"
#include "doppler/place/list/list_schedule.h"

namespace doppler {
namespace {

// The start of a ready op on a device is max(arrival of its inputs, time the device is available). The arrival is fixed
// once the op is ready and the other only grows, so two heaps suffice instead of a rescan of all pairs at each step:
// ops still under way, by arrival; and ops that have arrived, which would all start when the device is available, by
// level. An op moves from the first to the second at most once. What was placed or no longer fits in memory is dropped
// when it comes up.
//
// Devices that can be exchanged for one another share their heaps: the inputs of an op arrive on all of them at the
// same time, except on those where one of its producers ran. For these there is a pair of heaps of their own per
// device, and an op is in at most as many of them as it has inputs. The memory is therefore O(ops × kinds of devices +
// edges), and the time that much times a logarithm, and a look at every device per op.
class EarliestTaskFirst {
 public:
  EarliestTaskFirst(const Problem& problem, const Budget& budget)
      : problem_(problem),
        watch_(budget),
        level_(levels(problem.graph(), problem.costs().mean_times(), {}).bottom),
        schedule_(problem, budget),
        producers_(problem.graph()),
        entries_(problem.op_count(), 0),
        lost_(problem.op_count(), 0),
        placed_(problem.op_count(), 0),
        own_(problem.device_count()),
        visited_(problem.device_count(), problem.op_count()) {
    const std::vector<std::uint32_t> kind = interchangeable_devices(problem);
    kinds_.resize(*std::max_element(kind.begin(), kind.end()) + 1);
    for (DeviceId device = 0; device < problem.device_count(); ++device) kinds_[kind[device]].devices.push_back(device);
  }

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
  template <typename Worse>
  class Heap {
   public:
    bool empty() const { return entries_.empty(); }
    const Entry& top() const { return entries_.front(); }
    void push(const Entry& entry) {
      entries_.push_back(entry);
      std::push_heap(entries_.begin(), entries_.end(), Worse());
    }
    void pop() {
      std::pop_heap(entries_.begin(), entries_.end(), Worse());
      entries_.pop_back();
    }
    // Forgets placed ops that have not come up, once they are the most of the entries.
    void forget(const std::vector<char>& placed, std::size_t ready) {
      if (entries_.size() < kFewEntries + 2 * ready) return;
      std::erase_if(entries_, [&](const Entry& entry) { return placed[entry.op] != 0; });
      std::make_heap(entries_.begin(), entries_.end(), Worse());
    }

   private:
    static constexpr std::size_t kFewEntries = 1024;
    std::vector<Entry> entries_;
  };
  struct Queues {
    Heap<LaterArrival> under_way;
    Heap<LowerLevel> arrived;
  };
  struct Kind {
    std::vector<DeviceId> devices;  // ascending
    Queues shared;                  // empty for a single device
  };
  struct Pair {
    Entry entry;  // with the start for its time
    DeviceId device;
    bool worse_than(const Pair& other) const {
      return std::tie(entry.time, entry.minus_level, entry.op, device) >
             std::tie(other.entry.time, other.entry.minus_level, other.entry.op, other.device);
    }
  };

  void add(OpId op) {
    ++ready_;
    const auto devices = schedule_.devices(op);
    if (devices.size() == 1) return add_own(op, devices.front());
    for (const TensorId tensor : problem_.graph().inputs(op)) {
      const DeviceId device = schedule_.device_of(problem_.graph().producer(tensor));
      if (visited_[device] == op) continue;
      visited_[device] = op;
      if (problem_.allows(op, device)) add_own(op, device);
    }
    for (Kind& kind : kinds_) {
      if (!problem_.allows(op, kind.devices.front())) continue;
      const auto elsewhere = std::find_if(kind.devices.begin(), kind.devices.end(),
                                          [&](DeviceId device) { return visited_[device] != op; });
      if (elsewhere == kind.devices.end()) continue;
      if (kind.devices.size() == 1) {
        add_own(op, *elsewhere);
        continue;
      }
      kind.shared.under_way.forget(placed_, ready_);
      kind.shared.under_way.push({schedule_.arrival(op, *elsewhere), -level_[op], op});
      ++entries_[op];
    }
  }

  void add_own(OpId op, DeviceId device) {
    own_[device].under_way.forget(placed_, ready_);
    own_[device].under_way.push({schedule_.arrival(op, device), -level_[op], op});
    ++entries_[op];
  }

  // An entry is gone. An op that loses its last one has no device with memory left.
  void drop(OpId op) {
    if (--entries_[op] == 0) homeless_.push_back(op);
  }

  // Whether an entry of a device's own heaps still counts.
  bool alive(OpId op, DeviceId device) {
    if (placed_[op]) return false;
    const auto devices = schedule_.devices(op);
    const bool allowed = devices.size() > 1 || devices.front() == device;
    if (allowed && schedule_.fits(op, device)) return true;
    lost_[op] |= static_cast<char>(allowed);
    drop(op);
    return false;
  }

  // The same for shared heaps, if the entry came up for `device`. An op that does not fit there, or whose unit was
  // placed meanwhile, goes to the own heaps of the devices that are left to it.
  bool alive(OpId op, DeviceId device, const Kind& kind) {
    if (placed_[op]) return false;
    const auto devices = schedule_.devices(op);
    if (devices.size() > 1 && schedule_.fits(op, device)) return true;
    lost_[op] |= static_cast<char>(devices.size() > 1);
    for (const DeviceId other : kind.devices)
      if ((devices.size() > 1 || devices.front() == other) && schedule_.fits(op, other)) add_own(op, other);
    drop(op);
    return false;
  }

  // The best pair of some queues. device_at(time): the first device that an op can start on at that time.
  template <typename DeviceAt, typename IsAlive>
  std::optional<Pair> best_of(Queues& queues, Seconds available, DeviceAt device_at, IsAlive is_alive) {
    auto& [under_way, arrived] = queues;
    while (!under_way.empty() && under_way.top().time <= available) {
      arrived.forget(placed_, ready_);
      arrived.push(under_way.top());
      under_way.pop();
    }
    if (!arrived.empty()) {
      const DeviceId device = device_at(available);
      for (; !arrived.empty(); arrived.pop())
        if (is_alive(arrived.top().op, device))
          return Pair{{available, arrived.top().minus_level, arrived.top().op}, device};
    }
    for (; !under_way.empty(); under_way.pop()) {
      const DeviceId device = device_at(under_way.top().time);
      if (is_alive(under_way.top().op, device)) return Pair{under_way.top(), device};
    }
    return std::nullopt;
  }

  std::optional<Pair> best_of(Kind& kind) {
    const auto& devices = kind.devices;
    if (devices.size() == 1) return std::nullopt;
    Seconds available = Costs::kNever;
    for (const DeviceId device : devices) available = std::min(available, schedule_.available(device));
    const auto first_available = [&](Seconds time) {
      return *std::find_if(devices.begin(), devices.end(),
                           [&](DeviceId device) { return schedule_.available(device) <= time; });
    };
    return best_of(kind.shared, available, first_available,
                   [&](OpId op, DeviceId device) { return alive(op, device, kind); });
  }

  std::optional<Pair> best_of(DeviceId device) {
    return best_of(
        own_[device], schedule_.available(device), [=](Seconds) { return device; },
        [&](OpId op, DeviceId) { return alive(op, device); });
  }

  void place_one() {
    watch_.step(problem_.device_count());
    std::optional<Pair> best;
    const auto consider = [&](const std::optional<Pair>& pair) {
      if (pair && (!best || best->worse_than(*pair))) best = pair;
    };
    for (Kind& kind : kinds_) consider(best_of(kind));  // first: it may add to the devices' own
    for (DeviceId device = 0; device < problem_.device_count(); ++device) consider(best_of(device));
    if (homeless_.empty()) {
      place(best->entry.op, best->device, lost_[best->entry.op] ? Cause::memory : Cause::earliest_start);
    } else {  // at once: what it delays does not get better by waiting
      const OpId op = homeless_.back();
      homeless_.pop_back();
      const auto choice = schedule_.choose(op, [&](DeviceId d) { return schedule_.appended_start(op, d); });
      place(op, choice.device, Cause::memory);
    }
  }

  void place(OpId op, DeviceId device, Cause cause) {
    placed_[op] = 1;
    --ready_;
    schedule_.place(op, device, schedule_.appended_start(op, device), cause);
    producers_.placed(op, [&](OpId consumer) { add(consumer); });
  }

  const Problem& problem_;
  Watch watch_;
  const std::vector<Seconds> level_;  // static: no transfers
  ListSchedule schedule_;
  ReadyCounter producers_;
  std::vector<std::uint32_t> entries_;  // per ready op: in how many heaps it still counts
  std::vector<char> lost_;              // per ready op: it did not fit on a device
  std::vector<char> placed_;
  std::vector<Kind> kinds_;
  std::vector<Queues> own_;    // per device
  std::vector<OpId> visited_;  // per device: the last op for which it was found to have run a producer
  std::vector<OpId> homeless_;
  std::size_t ready_ = 0;  // ops that are ready and not placed
};

}  // namespace

Proposal etf(const Problem& problem, Objective& objective, const MethodOptions& options) {
  return fit_in_memory(objective, {EarliestTaskFirst(problem, options.budget).run()}, options.budget);
}

}  // namespace doppler
