#include "doppler/place/partition/enumerative.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "doppler/graph/levels.h"
#include "doppler/place/list/simple_placements.h"
#include "doppler/place/memory.h"
#include "doppler/place/partition/assignment.h"

namespace doppler {
namespace {

// The paper works on expressions, whose shards are known; a graph has no expression ids. What we take for a
// meta-op are the ops of one depth and kind, in id order: shards of one operation agree in both, unrelated
// ops of the same depth may too, and are then spread together.
//
// The shards are dealt out in rounds of one per device. A round is a one-to-one map of shards to devices, and
// the paper enumerates all permutations for the one with the least transfer time; cost is additive, so the
// assignment problem has the same optimum without the factorial. An incomplete round (all there is of a lone
// op or a reduction) takes the cheapest devices, the least loaded of equals.
class Enumerative {
 public:
  Enumerative(const Problem& problem, const Budget& budget)
      : problem_(problem),
        watch_(budget),
        graph_(problem.graph()),
        placement_(empty_placement(problem)),
        memory_(problem),
        load_(problem.device_count(), 0.0),
        state_(problem.op_count(), State::open),
        present_(std::size_t{graph_.tensor_count()} * problem.device_count(), 0) {}

  Placement run() && {
    const std::vector<std::uint32_t> depth = depths(graph_);
    const auto key = [&](OpId op) { return std::tuple(depth[op], graph_.kind_id(op)); };
    std::vector<OpId> order(problem_.op_count());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](OpId a, OpId b) { return key(a) < key(b); });
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      while (end < order.size() && key(order[end]) == key(order[begin])) ++end;
      place_meta_op(std::span(order).subspan(begin, end - begin));
    }
    return std::move(placement_);
  }

 private:
  enum class State : std::uint8_t { open, in_round, placed };

  void set_state(OpId op, State state) {
    for (const OpId member : problem_.unit(op)) state_[member] = state;
  }

  void place_meta_op(std::span<const OpId> shards) {
    std::vector<OpId> round;
    for (const OpId op : shards) {
      if (state_[op] == State::in_round) place_round(round);  // another op of its unit is
      if (state_[op] == State::placed) {
        account(op, placement_.device_of_op[op]);
        continue;
      }
      set_state(op, State::in_round);
      round.push_back(op);
      if (round.size() == problem_.device_count()) place_round(round);
    }
    place_round(round);
  }

  void place_round(std::vector<OpId>& round) {
    if (round.empty()) return;
    std::vector<DeviceId> columns(problem_.device_count());
    std::iota(columns.begin(), columns.end(), 0);
    std::stable_sort(columns.begin(), columns.end(), [&](DeviceId a, DeviceId b) { return load_[a] < load_[b]; });
    const auto rows = static_cast<std::uint32_t>(round.size());
    std::vector<double> cost;
    double dearest = 0;
    for (const OpId op : round) {
      watch_.step(columns.size());
      for (const DeviceId device : columns) {
        cost.push_back(possible(op, device) ? this->cost(op, device) : Costs::kNever);
        if (cost.back() < Costs::kNever) dearest = std::max(dearest, cost.back());
      }
    }
    // Dearer than any assignment that avoids it, so taken only if there is none.
    std::replace(cost.begin(), cost.end(), Costs::kNever, (dearest + 1) * (rows + 1));
    const auto column_of_row = least_cost_assignment(cost, rows, problem_.device_count(), watch_);
    for (std::uint32_t row = 0; row < rows; ++row) place(round[row], columns[column_of_row[row]]);
    round.clear();
  }

  bool possible(OpId op, DeviceId device) const { return problem_.allows(op, device) && memory_.fits(op, device); }

  // Time to bring what is not there yet, and to run.
  Seconds cost(OpId op, DeviceId device) const {
    Seconds total = problem_.costs().op_time(op, device);
    for (const TensorId tensor : graph_.inputs(op))
      if (!is_present(tensor, device))
        total += problem_.costs().transfer_time(tensor, placement_.device_of_op[graph_.producer(tensor)], device);
    return total;
  }

  // `device` as assigned, or, if the round had nothing possible for this op, the best one outside the round.
  void place(OpId op, DeviceId device) {
    Cause cause = Cause::chosen;
    if (!possible(op, device)) {
      if (problem_.allows(op, device)) cause = Cause::memory;
      const auto devices = problem_.devices(op);
      device = *std::min_element(devices.begin(), devices.end(), [&](DeviceId a, DeviceId b) {
        return std::tuple(memory_.excess(op, a), cost(op, a)) < std::tuple(memory_.excess(op, b), cost(op, b));
      });
    }
    set_state(op, State::placed);
    memory_.add(op, device);
    assign_unit(problem_, placement_, op, device, cause);
    account(op, device);
  }

  void account(OpId op, DeviceId device) {
    load_[device] += problem_.costs().op_time(op, device);
    for (const TensorId tensor : graph_.inputs(op)) present_[index(tensor, device)] = 1;
    for (const TensorId tensor : graph_.outputs(op)) present_[index(tensor, device)] = 1;
  }

  std::size_t index(TensorId tensor, DeviceId device) const {
    return std::size_t{tensor} * problem_.device_count() + device;
  }
  bool is_present(TensorId tensor, DeviceId device) const { return present_[index(tensor, device)]; }

  const Problem& problem_;
  Watch watch_;
  const Graph& graph_;
  Placement placement_;
  StaticMemory memory_;
  std::vector<Seconds> load_;
  std::vector<State> state_;
  std::vector<char> present_;  // (tensor, device): produced or already moved there
};

}  // namespace

Proposal enumerative(const Problem& problem, Objective& objective, const MethodOptions& options) {
  return fit_in_memory(objective, {Enumerative(problem, options.budget).run()}, options.budget);
}

}  // namespace doppler
