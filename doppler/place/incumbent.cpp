#include "doppler/place/incumbent.h"

#include <algorithm>

namespace doppler {
namespace {

constexpr std::uint64_t kBudgetChecks = 256;  // evaluations between two looks at the clock
constexpr std::uint64_t kMovesPerOp = 500;    // of the local search: enough for the small graphs that `exact` solves
constexpr std::uint64_t kMostMoves = 100'000;

// Each op, by rank, on the device where it ends first given what was placed before it, if its parameters fit.
class EarliestFinish {
 public:
  explicit EarliestFinish(const Problem& problem)
      : problem_(problem),
        device_of_op_(problem.op_count(), 0),
        placed_(problem.op_count(), false),
        end_(problem.op_count(), 0.0),
        free_(problem.device_count(), 0.0),
        resident_(problem.device_count(), 0) {}

  std::vector<DeviceId> run(std::span<const std::uint32_t> rank) {
    std::vector<OpId> order(rank.size());
    for (OpId op = 0; op < rank.size(); ++op) order[rank[op]] = op;
    for (const OpId op : order) {
      if (!placed_[op]) {
        const DeviceId device = best_device(op);
        for (const OpId member : problem_.unit(op)) {
          placed_[member] = true;
          device_of_op_[member] = device;
          resident_[device] += problem_.graph().parameter_bytes(member);
        }
      }
      const DeviceId device = device_of_op_[op];
      free_[device] = end_[op] = end_on(op, device);
    }
    return device_of_op_;
  }

 private:
  Seconds end_on(OpId op, DeviceId device) const {
    Seconds start = free_[device];
    for (const TensorId tensor : problem_.graph().inputs(op)) {
      const OpId producer = problem_.graph().producer(tensor);
      start = std::max(start, end_[producer] +
                                  problem_.costs().transfer_time(tensor, device_of_op_[producer], device));
    }
    return start + problem_.costs().op_time(op, device);
  }

  DeviceId best_device(OpId op) const {
    Bytes parameters = 0;
    for (const OpId member : problem_.unit(op)) parameters += problem_.graph().parameter_bytes(member);
    DeviceId best = problem_.devices(op).front();
    Seconds best_end = Costs::kNever;
    for (const DeviceId device : problem_.devices(op)) {
      const Bytes capacity = problem_.machine().device(device).memory;
      if (capacity > 0 && resident_[device] + parameters > capacity) continue;
      const Seconds end = end_on(op, device);
      if (end < best_end) best = device, best_end = end;
    }
    return best;
  }

  const Problem& problem_;
  std::vector<DeviceId> device_of_op_;
  std::vector<char> placed_;
  std::vector<Seconds> end_, free_;
  std::vector<Bytes> resident_;
};

}  // namespace

Seconds Incumbent::offer(const Placement& placement) {
  spend();
  Seconds makespan = Costs::kNever;
  if (problem_.memory_limited()) {
    const Timeline timeline = simulator_.simulate(placement);
    if (timeline.feasible()) makespan = timeline.makespan;
  } else {
    makespan = simulator_.makespan(placement);
  }
  if (makespan < makespan_) {
    makespan_ = makespan;
    placement_ = placement;
    if (options_.on_progress) options_.on_progress({"exact", makespan_, evaluations_});
  }
  return makespan;
}

bool Incumbent::spend() {
  ++evaluations_;
  if (evaluations_ >= options_.budget.evaluations()) stopped_ = true;
  if (evaluations_ % kBudgetChecks == 0 && options_.budget.out_of_time()) stopped_ = true;
  return !stopped_;
}

void find_first_incumbent(const Problem& problem, const MethodOptions& options, Seconds bound,
                          Incumbent& incumbent) {
  const OpId n = problem.op_count();
  const Discipline discipline = problem.rules().discipline;
  const bool ranked = discipline == Discipline::priority || discipline == Discipline::ordered;
  const std::vector<std::uint32_t> rank = default_priority(problem.costs());
  Placement current;
  current.device_of_op = EarliestFinish(problem).run(rank);
  if (ranked) current.priority = rank;
  Seconds value = incumbent.offer(current);

  Rng rng(options.seed);
  const std::uint64_t moves = std::min(kMovesPerOp * n, kMostMoves);
  for (std::uint64_t i = 0; i < moves && !incumbent.beats(bound) && incumbent.spend(); ++i) {
    Placement next = current;
    if (ranked && rng.below(2) == 0) {
      std::swap(next.priority[rng.below(n)], next.priority[rng.below(n)]);
    } else {
      const OpId op = rng.below(n);
      const auto devices = problem.devices(op);
      const DeviceId device = devices[rng.below(static_cast<std::uint32_t>(devices.size()))];
      for (const OpId member : problem.unit(op)) next.device_of_op[member] = device;
    }
    const Seconds next_value = incumbent.offer(next);
    if (next_value > value) continue;
    value = next_value;
    current = std::move(next);
  }
}

}  // namespace doppler
