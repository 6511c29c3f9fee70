#include "doppler/sim/sim_tables.h"

namespace doppler {
SimTables::SimTables(const Problem& problem, const JitterDraw& draw)
    : problem_(problem),
      uniform_(problem.costs().device_classes() == 1 && problem.costs().link_classes() <= 1),
      device_classes_(problem.costs().device_classes()),
      link_classes_(problem.costs().link_classes()),
      op_count_(problem.op_count()),
      device_count_(problem.device_count()) {
  const Graph& graph = problem.graph();
  const Costs& costs = problem.costs();
  const DeviceId devices = problem.device_count();
  for (DeviceId id = 0; id < devices; ++id) {
    slots_.push_back(problem.machine().device(id).slots);
    most_slots_ = std::max(most_slots_, slots_.back());
  }
  ops_.resize(graph.op_count());
  edges_.reserve(graph.edge_count());
  for (OpId op = 0; op < graph.op_count(); ++op) {
    Op& record = ops_[op];
    record.time = costs.op_time(op, 0) * draw.op_factor(graph, op);
    record.in_degree = static_cast<std::uint32_t>(graph.inputs(op).size());
    if (record.in_degree == 0) sources_.push_back(op);
    record.edge_begin = static_cast<std::uint32_t>(edges_.size());
    for (const TensorId tensor : graph.outputs(op)) {
      const double factor = draw.transfer_factor(tensor);
      const Seconds transfer = devices > 1 ? costs.transfer_time(tensor, 0, 1) * factor : 0;
      for (const OpId consumer : graph.consumers(tensor)) edges_.push_back({transfer, consumer, tensor});
    }
    record.edge_end = static_cast<std::uint32_t>(edges_.size());
  }
  if (uniform_) return;

  for (DeviceId id = 0; id < devices; ++id) device_class_.push_back(costs.device_class(id));
  link_class_.assign(std::size_t{devices} * devices, 0);
  op_times_.resize(graph.op_count() * device_classes_);
  transfer_times_.resize(graph.tensor_count() * link_classes_);
  for (OpId op = 0; op < graph.op_count(); ++op) {
    const double factor = draw.op_factor(graph, op);
    for (std::size_t c = 0; c < device_classes_; ++c)
      op_times_[op * device_classes_ + c] = costs.class_time(op, c) * factor;
  }
  for (DeviceId src = 0; src < devices; ++src)
    for (DeviceId dst = 0; dst < devices; ++dst)
      if (src != dst) link_class_[src * devices + dst] = costs.link_class(src, dst);
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor) {
    const double factor = draw.transfer_factor(tensor);
    for (std::size_t c = 0; c < link_classes_; ++c)
      transfer_times_[tensor * link_classes_ + c] = costs.class_transfer_time(tensor, c) * factor;
  }
}

std::vector<OpState> initial_states(const SimTables& tables) {
  std::vector<OpState> states(tables.op_count());
  for (OpId op = 0; op < tables.op_count(); ++op) states[op] = {0.0, tables.op(op).in_degree};
  return states;
}

}  // namespace doppler
