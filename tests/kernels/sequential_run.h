#pragma once

#include "doppler/kernels/program_kernels.h"

namespace doppler {

// Who folds the inputs of a formation: the op itself, in its own order, or the runtime, as they arrive.
enum class FoldOrder { fixed, arrival };

// The smallest runtime there is: one op after the other, every tensor in memory of its own.
inline void run_sequentially(const Graph& graph, Kernels& kernels, FoldOrder order = FoldOrder::fixed) {
  const auto free = [&](std::byte* data) { kernels.memory().free(0, data); };
  std::vector<std::unique_ptr<std::byte, decltype(free)>> tensors;
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor)
    tensors.emplace_back(kernels.memory().allocate(0, graph.bytes(tensor)), free);
  for (const OpId op : graph.topological_order()) {
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    for (const TensorId tensor : graph.inputs(op)) inputs.push_back(tensors[tensor].get());
    for (const TensorId tensor : graph.outputs(op)) outputs.push_back(tensors[tensor].get());
    const OpBuffers buffers{inputs, outputs};
    if (order == FoldOrder::fixed || !kernels.folds(op)) {
      kernels.run(op, 0, buffers);
      continue;
    }
    for (std::size_t i = inputs.size(); i-- > 0;)
      kernels.fold(op, 0, i, i + 1 == inputs.size(), buffers);  // last first
  }
}

}  // namespace doppler
