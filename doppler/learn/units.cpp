#include "doppler/learn/units.h"

#include <algorithm>
#include <cmath>

#include "doppler/place/memory.h"

namespace doppler {

Units::Units(const Problem& problem) : problem_(problem) {
  const Graph& graph = problem_.graph();
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  unit_of_op_.assign(problem_.op_count(), kNone);
  for (const OpId op : graph.topological_order()) {
    if (unit_of_op_[op] != kNone) continue;
    for (const OpId member : problem_.unit(op)) unit_of_op_[member] = count();
    first_op_.push_back(op);
  }
  LevelGraph ops{.node_count = problem_.op_count()};
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor)
    for (const OpId consumer : graph.consumers(tensor)) ops.edges.emplace_back(graph.producer(tensor), consumer);
  graph_ = contracted(ops, unit_of_op_, count());

  allowed_.resize(std::size_t{count()} * device_count());
  seconds_.resize(allowed_.size());
  for (std::uint32_t unit = 0; unit < count(); ++unit)
    for (const DeviceId device : problem_.devices(first_op_[unit])) {
      const std::size_t at = std::size_t{unit} * device_count() + device;
      allowed_[at] = 1;
      for (const OpId op : problem_.unit(first_op_[unit]))
        seconds_[at] += static_cast<float>(problem_.costs().op_time(op, device));
    }
}

void settle(const Units& units, std::span<const DeviceId> device_of_unit, Episode& episode) {
  const Problem& problem = units.problem();
  episode.device_of_op.resize(problem.op_count());
  episode.order.clear();
  StaticMemory memory(problem);
  for (std::uint32_t unit = 0; unit < units.count(); ++unit) {
    const OpId op = units.first_op()[unit];
    const auto seconds = units.seconds(unit);
    DeviceId device = device_of_unit[unit];
    if (!problem.allows(op, device) || !memory.fits(op, device)) {
      const DeviceId wanted = device;
      device = memory.least_excess(op);
      for (const DeviceId other : problem.devices(op))
        if (other != wanted && memory.fits(op, other) && (!memory.fits(op, device) || seconds[other] < seconds[device]))
          device = other;
    }
    memory.add(op, device);
    for (const OpId member : problem.unit(op)) episode.device_of_op[member] = device;
  }
}

std::vector<float> relative_speeds(std::span<const float> seconds, DeviceId devices) {
  constexpr float kMost = 3;  // e³: twenty times as fast, which leaves no doubt
  std::vector<float> result(seconds.size());
  for (std::size_t row = 0; row < seconds.size(); row += devices) {
    float total = 0, count = 0;
    for (DeviceId device = 0; device < devices; ++device)
      if (seconds[row + device] > 0) total += seconds[row + device], count += 1;
    for (DeviceId device = 0; device < devices; ++device)
      if (seconds[row + device] > 0)
        result[row + device] = std::clamp(std::log(total / count / seconds[row + device]), -kMost, kMost);
  }
  return result;
}

std::vector<float> group_seconds(std::span<const float> seconds, DeviceId devices,
                                 std::span<const std::uint32_t> group_of_node, std::uint32_t group_count) {
  std::vector<float> result(std::size_t{group_count} * devices);
  for (std::size_t i = 0; i < seconds.size(); ++i)
    result[std::size_t{group_of_node[i / devices]} * devices + i % devices] += seconds[i];
  return result;
}

}  // namespace doppler
