#include "doppler/engine/runtime/routes.h"

#include <algorithm>

namespace doppler {

Routes::Routes(const Graph& graph, DeviceId devices, std::vector<Bytes> bytes, bool one_memory)
    : graph_(&graph), devices_(devices), bytes_(std::move(bytes)), one_memory_(one_memory) {
  input_begin_.push_back(0);
  for (OpId op = 0; op < graph.op_count(); ++op) {
    const auto inputs = graph.inputs(op);
    input_begin_.push_back(input_begin_.back() + static_cast<std::uint32_t>(inputs.size()));
    most_inputs_ = std::max(most_inputs_, inputs.size());
    most_outputs_ = std::max(most_outputs_, graph.outputs(op).size());
    const auto has_bytes = [&](TensorId tensor) { return bytes_[tensor] > 0; };
    bool touches = std::any_of(inputs.begin(), inputs.end(), has_bytes);
    for (const TensorId tensor : graph.outputs(op)) touches = touches || has_bytes(tensor);
    touches_memory_.push_back(touches);
  }
  consumer_begin_.push_back(0);
  for (TensorId tensor = 0; tensor < graph.tensor_count(); ++tensor) {
    for (const OpId consumer : graph.consumers(tensor)) {
      const auto inputs = graph.inputs(consumer);
      input_of_edge_.push_back(
          static_cast<std::uint32_t>(std::find(inputs.begin(), inputs.end(), tensor) - inputs.begin()));
    }
    consumer_begin_.push_back(static_cast<std::uint32_t>(input_of_edge_.size()));
  }
  consumers_.resize(input_of_edge_.size());
  input_buffer_.resize(input_of_edge_.size());
  local_end_.resize(graph.tensor_count());
  transfer_begin_.resize(graph.tensor_count() + 1);
}

void Routes::assign(std::span<const DeviceId> device_of_op) {
  device_of_op_.assign(device_of_op.begin(), device_of_op.end());
  ops_begin_.assign(devices_ + 1, 0);
  for (const DeviceId device : device_of_op_) ++ops_begin_[device + 1];
  for (DeviceId device = 0; device < devices_; ++device) ops_begin_[device + 1] += ops_begin_[device];
  ops_.resize(device_of_op_.size());
  std::vector<std::uint32_t> next(ops_begin_.begin(), ops_begin_.end() - 1);
  for (OpId op = 0; op < ops_.size(); ++op) ops_[next[device_of_op_[op]]++] = op;
  transfers_.clear();
  traffic_.assign(devices_ * devices_, 0);
  seen_.assign(devices_, graph_->tensor_count());
  for (TensorId tensor = 0; tensor < graph_->tensor_count(); ++tensor) {
    transfer_begin_[tensor] = transfer_count();
    route(tensor);
  }
  transfer_begin_.back() = transfer_count();
}

// Sorts the tensor's consumers by device, those at home first, the others in the order in which their devices appear.
void Routes::route(TensorId tensor) {
  const DeviceId home = device_of_op_[graph_->producer(tensor)];
  const auto readers = graph_->consumers(tensor);
  const std::uint32_t* input = input_of_edge_.data() + consumer_begin_[tensor];
  const bool empty = bytes_[tensor] == 0;
  std::uint32_t end = consumer_begin_[tensor];
  const auto take = [&](DeviceId device, std::uint32_t buffer) {
    for (std::size_t i = 0; i < readers.size(); ++i) {
      if (device_of_op_[readers[i]] != device) continue;
      consumers_[end++] = {readers[i], input[i]};
      input_buffer_[input_begin_[readers[i]] + input[i]] = empty ? kNoBuffer : buffer;
    }
  };
  take(home, tensor);
  local_end_[tensor] = end;
  seen_[home] = tensor;
  for (const OpId reader : readers) {
    const DeviceId device = device_of_op_[reader];
    if (seen_[device] == tensor) continue;
    seen_[device] = tensor;
    const std::uint32_t first = end;
    take(device, one_memory_ ? tensor : graph_->tensor_count() + transfer_count());
    transfers_.push_back({tensor, home, device, first, end, false});
    ++traffic_[home * devices_ + device];
  }
}

}  // namespace doppler
