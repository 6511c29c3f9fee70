#pragma once

#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "doppler/graph.h"

namespace doppler {

// A placement laid out for execution: who on which device reads each tensor, which copies that takes, and in which
// buffer each op finds its inputs. Buffers 0 … tensors-1 are the tensors where they were made, buffer tensors + k is
// the copy that transfer k makes. Where all devices have one memory, everybody reads the tensor where it was made, and
// a transfer is only the news of it. Internal to doppler/engine.
class Routes {
 public:
  struct Consumer {
    OpId op;
    std::uint32_t input;  // the tensor is Graph::inputs(op)[input]
  };
  struct Transfer {
    TensorId tensor;
    DeviceId src, dst;
    std::uint32_t first, last;  // its consumers on `dst`, as consumers() has them
    bool direct;                // the producer's worker hands it over itself, without a courier
  };
  static constexpr std::uint32_t kNoBuffer =
      std::numeric_limits<std::uint32_t>::max();  // stands for a tensor of no bytes

  // `bytes` has the sizes of the tensors as the engine sees them; `one_memory` says that nothing is copied.
  Routes(const Graph& graph, DeviceId devices, std::vector<Bytes> bytes, bool one_memory);

  Bytes bytes(TensorId tensor) const { return bytes_[tensor]; }
  // How many ops and transfers use the tensor where it was made.
  std::uint32_t users(TensorId tensor) const {
    return one_memory_
               ? consumer_begin_[tensor + 1] - consumer_begin_[tensor]
               : static_cast<std::uint32_t>(local(tensor).size()) + last_transfer(tensor) - first_transfer(tensor);
  }
  // The device whose memory has the buffer from which an op on `reader` reads the tensor.
  DeviceId owner(TensorId tensor, DeviceId reader) const {
    return one_memory_ ? device_of_op_[graph_->producer(tensor)] : reader;
  }

  // Lays out a placement; nothing is handed over directly until hand_over() says so.
  void assign(std::span<const DeviceId> device_of_op);
  // Marks the transfers for which `choose` holds as direct.
  template <typename Choose>
  void hand_over(Choose choose) {
    for (Transfer& transfer : transfers_) transfer.direct = choose(std::as_const(transfer));
  }

  DeviceId device(OpId op) const { return device_of_op_[op]; }
  // The ops of a device are in ascending order.
  std::span<const OpId> ops_on(DeviceId device) const {
    return {ops_.data() + ops_begin_[device], ops_.data() + ops_begin_[device + 1]};
  }
  // These are the consumers of a tensor on the device where it was made.
  std::span<const Consumer> local(TensorId tensor) const {
    return {consumers_.data() + consumer_begin_[tensor], consumers_.data() + local_end_[tensor]};
  }
  // The transfers of a tensor are numbered in a row, one per other device that reads it.
  std::uint32_t first_transfer(TensorId tensor) const { return transfer_begin_[tensor]; }
  std::uint32_t last_transfer(TensorId tensor) const { return transfer_begin_[tensor + 1]; }
  std::uint32_t transfer_count() const { return static_cast<std::uint32_t>(transfers_.size()); }
  const Transfer& transfer(std::uint32_t id) const { return transfers_[id]; }
  std::span<const Transfer> transfers() const { return transfers_; }
  std::span<const Consumer> consumers(const Transfer& transfer) const {
    return {consumers_.data() + transfer.first, consumers_.data() + transfer.last};
  }
  // Returns how many transfers go from src to dst.
  std::uint32_t traffic(DeviceId src, DeviceId dst) const { return traffic_[src * devices_ + dst]; }

  std::span<const std::uint32_t> input_buffers(OpId op) const {
    return {input_buffer_.data() + input_begin_[op], input_buffer_.data() + input_begin_[op + 1]};
  }
  std::uint32_t input_begin(OpId op) const { return input_begin_[op]; }
  std::size_t edge_count() const { return input_buffer_.size(); }
  std::size_t most_inputs() const { return most_inputs_; }
  std::size_t most_outputs() const { return most_outputs_; }
  // Whether the op reads or writes any bytes.
  bool touches_memory(OpId op) const { return touches_memory_[op]; }

 private:
  void route(TensorId tensor);

  const Graph* graph_;
  DeviceId devices_;
  std::vector<Bytes> bytes_;
  bool one_memory_;
  std::size_t most_inputs_ = 0, most_outputs_ = 0;
  std::vector<std::uint32_t> input_begin_, consumer_begin_;
  std::vector<std::uint32_t> input_of_edge_;  // by tensor and consumer, in the graph's order
  std::vector<char> touches_memory_;

  std::vector<DeviceId> device_of_op_;
  std::vector<std::uint32_t> ops_begin_, local_end_, transfer_begin_, traffic_, input_buffer_;
  std::vector<OpId> ops_;
  std::vector<Consumer> consumers_;
  std::vector<Transfer> transfers_;
  std::vector<TensorId> seen_;  // per device: the last tensor routed there
};

}  // namespace doppler
