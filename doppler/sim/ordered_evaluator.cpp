#include "doppler/sim/ordered_evaluator.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/graph/levels.h"

namespace doppler {

bool OrderedEvaluator::supports(const Problem& problem) {
  const Rules& rules = problem.rules();
  if (!are_delays(rules.links) || rules.bulk_synchronous) return false;
  for (DeviceId id = 0; id < problem.device_count(); ++id)
    if (problem.machine().device(id).slots != 1) return false;
  return true;
}

OrderedEvaluator::OrderedEvaluator(const Problem& problem)
    : problem_(problem),
      op_count_(problem.op_count()),
      device_count_(problem.device_count()),
      device_classes_(problem.costs().device_classes()),
      uniform_(device_classes_ == 1 && problem.costs().link_classes() <= 1),
      device_of_op_(op_count_),
      end_(op_count_),
      snapshots_((op_count_ / kStride + std::size_t{1}) * device_count_),
      free_at_(device_count_),
      old_end_(op_count_),
      new_snapshots_(snapshots_.size()) {
  DOPPLER_CHECK(supports(problem), "rules or machine not supported");
  const Graph& graph = problem.graph();
  const Costs& costs = problem.costs();
  for (DeviceId id = 0; id < device_count_; ++id) device_class_.push_back(costs.device_class(id));
  time_.resize(op_count_ * device_classes_);
  input_begin_.push_back(0);
  consumer_begin_.push_back(0);
  for (OpId op = 0; op < op_count_; ++op) {
    for (std::size_t c = 0; c < device_classes_; ++c) time_[op * device_classes_ + c] = costs.class_time(op, c);
    for (const TensorId tensor : graph.inputs(op))
      inputs_.push_back({costs.fastest_transfer(tensor), graph.producer(tensor), tensor});
    input_begin_.push_back(static_cast<std::uint32_t>(inputs_.size()));
    for (const TensorId tensor : graph.outputs(op))
      consumers_.insert(consumers_.end(), graph.consumers(tensor).begin(), graph.consumers(tensor).end());
    consumer_begin_.push_back(static_cast<std::uint32_t>(consumers_.size()));
  }
  tail_ = levels(graph, costs.fastest_times(), {}).bottom;
  // Less the op itself, and a little less for the rounding of sums in another order.
  constexpr double kRounding = 1 - 1e-9;
  for (OpId op = 0; op < op_count_; ++op) tail_[op] = std::max(0.0, tail_[op] - costs.fastest(op)) * kRounding;
}

Seconds OrderedEvaluator::reset(std::span<const DeviceId> device_of_op, std::span<const OpId> order,
                                std::span<const std::uint32_t> rank) {
  // Everything counts as changed up to the last position, so the evaluation cannot end early.
  return change(device_of_op, order, rank, 0, op_count_ - 1, std::numeric_limits<Seconds>::max());
}

Seconds OrderedEvaluator::change(std::span<const DeviceId> device_of_op, std::span<const OpId> order,
                                 std::span<const std::uint32_t> rank, std::uint32_t first, std::uint32_t last,
                                 Seconds limit) {
  const Seconds makespan = uniform_
                               ? evaluate<true>(device_of_op.data(), order.data(), rank.data(), first, last, limit)
                               : evaluate<false>(device_of_op.data(), order.data(), rank.data(), first, last, limit);
  if (makespan > limit) return makespan;
  for (std::uint32_t position = first; position <= last; ++position)
    device_of_op_[order[position]] = device_of_op[order[position]];
  return makespan_ = makespan;
}

void OrderedEvaluator::load_free_at(const OpId* order, std::uint32_t position) {
  const std::uint32_t snapshot = position / kStride;
  std::copy_n(&snapshots_[std::size_t{snapshot} * device_count_], device_count_, free_at_.data());
  for (std::uint32_t i = snapshot * kStride; i < position; ++i) free_at_[device_of_op_[order[i]]] = end_[order[i]];
}

Seconds OrderedEvaluator::take_back(const OpId* order, std::uint32_t first, std::uint32_t position) {
  for (std::uint32_t i = first; i < position; ++i) end_[order[i]] = old_end_[i];
  return std::numeric_limits<Seconds>::infinity();
}

template <bool Uniform>
Seconds OrderedEvaluator::start_of(OpId op, const DeviceId* device_of_op) const {
  const DeviceId device = device_of_op[op];
  Seconds start = free_at_[device];
  for (std::uint32_t i = input_begin_[op]; i < input_begin_[op + 1]; ++i) {
    const Input& input = inputs_[i];
    const DeviceId src = device_of_op[input.producer];
    Seconds arrival = end_[input.producer];
    if (src != device) arrival += Uniform ? input.transfer : problem_.costs().transfer_time(input.tensor, src, device);
    start = std::max(start, arrival);
  }
  return start;
}

template <bool Uniform>
Seconds OrderedEvaluator::evaluate(const DeviceId* device_of_op, const OpId* order, const std::uint32_t* rank,
                                   std::uint32_t first, std::uint32_t last, Seconds limit) {
  const DeviceId devices = device_count_;
  load_free_at(order, first);
  // `last` grows to the last position at which anything but the devices' times may differ from the current
  // placement.
  std::uint32_t position = first;
  Seconds makespan = 0;
  for (; position < op_count_; ++position) {
    if (position % kStride == 0) {
      const std::size_t row = std::size_t{position / kStride} * devices;
      if (position > last && std::equal(free_at_.begin(), free_at_.end(), &snapshots_[row])) {
        makespan = makespan_;
        break;
      }
      for (DeviceId id = 0; id < devices; ++id) new_snapshots_[row + id] = free_at_[id];
    }
    const OpId op = order[position];
    const DeviceId device = device_of_op[op];
    const Seconds end =
        start_of<Uniform>(op, device_of_op) + time_[Uniform ? op : op * device_classes_ + device_class_[device]];
    if (end + tail_[op] > limit) return take_back(order, first, position);
    old_end_[position] = end_[op];
    if (end != end_[op] || device != device_of_op_[op])
      for (std::uint32_t i = consumer_begin_[op]; i < consumer_begin_[op + 1]; ++i)
        last = std::max(last, rank[consumers_[i]]);
    end_[op] = end;
    free_at_[device] = end;
  }
  if (position == op_count_) makespan = *std::max_element(free_at_.begin(), free_at_.end());
  // Sums behind tail_ are rounded down a little, so the last word is the makespan itself.
  if (makespan > limit) return take_back(order, first, position);
  const std::size_t first_row = (first + kStride - 1) / kStride, last_row = (position + kStride - 1) / kStride;
  std::copy(new_snapshots_.begin() + static_cast<std::ptrdiff_t>(first_row * devices),
            new_snapshots_.begin() + static_cast<std::ptrdiff_t>(last_row * devices),
            snapshots_.begin() + static_cast<std::ptrdiff_t>(first_row * devices));
  return makespan;
}

}  // namespace doppler
