#include "doppler/place/list/critical_path.h"

#include <deque>
#include <map>

#include "doppler/base/rng.h"
#include "doppler/graph/levels.h"
#include "doppler/place/list/list_schedule.h"
#include "doppler/place/search/incumbent.h"

namespace doppler {
namespace {

constexpr std::uint64_t kRepetitions = 50;  // as in the published configuration

// The ready ops, of which the largest b-level is taken next, ties by lot. No op that becomes ready exceeds
// the one just taken (a b-level contains those of its consumers), so the ties of the current level can be set
// aside.
class MostCritical {
 public:
  explicit MostCritical(std::span<const Seconds> level) : level_(level) {}

  bool empty() const { return ties_.empty() && below_.empty(); }
  void add(OpId op) {
    if (!ties_.empty() && level_[op] == level_[ties_.front()])
      ties_.push_back(op);
    else
      push_below(op);
  }
  OpId take(Rng& rng) {
    if (ties_.empty()) {
      ties_.push_back(pop_below());
      while (!below_.empty() && below_.front().first == level_[ties_.front()]) ties_.push_back(pop_below());
    }
    std::swap(ties_[rng.below(static_cast<std::uint32_t>(ties_.size()))], ties_.back());
    const OpId op = ties_.back();
    ties_.pop_back();
    return op;
  }

 private:
  void push_below(OpId op) {
    below_.emplace_back(level_[op], op);
    std::push_heap(below_.begin(), below_.end());
  }
  OpId pop_below() {
    std::pop_heap(below_.begin(), below_.end());
    const OpId op = below_.back().second;
    below_.pop_back();
    return op;
  }

  std::span<const Seconds> level_;
  std::vector<OpId> ties_;
  std::vector<std::pair<Seconds, OpId>> below_;  // a heap
};

// The published defect: of k equally critical ops the number of one is drawn, and the op with that number in
// the whole ready list is taken.
class PublishedPick {
 public:
  explicit PublishedPick(std::span<const Seconds> level) : level_(level) {}

  bool empty() const { return list_.empty(); }
  void add(OpId op) {
    list_.push_back(op);
    ++count_of_level_[level_[op]];
  }
  OpId take(Rng& rng) {
    const auto chosen = list_.begin() + rng.below(count_of_level_.rbegin()->second);
    const OpId op = *chosen;
    list_.erase(chosen);
    const auto entry = count_of_level_.find(level_[op]);
    if (--entry->second == 0) count_of_level_.erase(entry);
    return op;
  }

 private:
  std::span<const Seconds> level_;
  std::deque<OpId> list_;  // in the order in which they became ready
  std::map<Seconds, std::uint32_t> count_of_level_;
};

template <typename Ready>
Placement repetition(const Problem& problem, std::span<const Seconds> level, const MethodOptions& options, Rng rng) {
  ListSchedule schedule(problem, options.budget);
  ReadyCounter producers(problem.graph());
  Ready ready(level);
  producers.start([&](OpId op) { ready.add(op); });
  while (!ready.empty()) {
    const OpId op = ready.take(rng);
    const auto [device, full] = schedule.choose(
        op, [&](DeviceId candidate) { return std::pair(schedule.appended_start(op, candidate), rng.bits()); });
    const Seconds start = options.published ? schedule.available(device) : schedule.appended_start(op, device);
    schedule.place(op, device, start, full ? Cause::memory : Cause::earliest_start);
    producers.placed(op, [&](OpId consumer) { ready.add(consumer); });
  }
  return std::move(schedule).finish(ListSchedule::Order::placed);
}

}  // namespace

Proposal critical_path(const Problem& problem, Objective& objective, const MethodOptions& options) {
  const Costs& costs = problem.costs();
  const Levels level = levels(problem.graph(), costs.mean_times(), costs.mean_transfers());
  const Rng rng(options.seed);
  Incumbent best("critical_path", objective, options);
  for (std::uint64_t i = 0; i < kRepetitions && !best.exhausted(); ++i)
    best.attempt([&] {
      return options.published ? repetition<PublishedPick>(problem, level.bottom, options, rng.split(i))
                               : repetition<MostCritical>(problem, level.bottom, options, rng.split(i));
    });
  return std::move(best).finish();
}

}  // namespace doppler
