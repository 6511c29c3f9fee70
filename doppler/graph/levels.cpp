#include "doppler/graph/levels.h"

#include <algorithm>

namespace doppler {

Levels levels(const Graph& graph, std::span<const Seconds> op_time, std::span<const Seconds> tensor_time) {
  Levels result;
  result.top.assign(graph.op_count(), 0.0);
  result.bottom.assign(graph.op_count(), 0.0);
  const auto transfer = [&](TensorId tensor) { return tensor_time.empty() ? 0.0 : tensor_time[tensor]; };
  for (const OpId op : graph.topological_order()) {
    for (const TensorId tensor : graph.inputs(op)) {
      const OpId producer = graph.producer(tensor);
      result.top[op] = std::max(result.top[op], result.top[producer] + op_time[producer] + transfer(tensor));
    }
  }
  const auto order = graph.topological_order();
  for (auto at = order.rbegin(); at != order.rend(); ++at) {  // clang++ 14, which fuzzes, has no views::reverse
    const OpId op = *at;
    Seconds below = 0;
    for (const TensorId tensor : graph.outputs(op))
      for (const OpId consumer : graph.consumers(tensor))
        below = std::max(below, transfer(tensor) + result.bottom[consumer]);
    result.bottom[op] = op_time[op] + below;
    result.longest = std::max(result.longest, result.bottom[op]);
  }
  return result;
}

std::vector<std::uint32_t> depths(const Graph& graph) {
  std::vector<std::uint32_t> depth(graph.op_count(), 0);
  for (const OpId op : graph.topological_order())
    for (const TensorId tensor : graph.inputs(op))
      depth[op] = std::max(depth[op], depth[graph.producer(tensor)] + 1);
  return depth;
}

}  // namespace doppler
