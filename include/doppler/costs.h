#pragma once

#include <memory>
#include <vector>

#include "doppler/graph.h"
#include "doppler/machine.h"

namespace doppler {

struct JitterDraw;

// Seconds per (op, device) and per (tensor, source, destination): everything a scheduler needs to know of a
// graph on a machine, which it shares.
//
// An op's time is its explicit time for the device's type if given (the exact type; else "accelerator", for
// any type but "cpu"; else "*"), otherwise what was measured for its kind and size, otherwise the roofline
//   overhead + max(flops / rate, (bytes read + bytes written) / memory bandwidth),
// each times the device's slowdown.
// A tensor's time is its explicit transfer time times the link's cost factor if given, otherwise
//   latency + bytes / bandwidth,
// and the latency alone where devices have one memory and hand over (Links::shared).
// Devices that are equal but for their names share a column, and links that are equal share one, so the
// tables stay small for large graphs.
class Costs {
 public:
  // Throws InputError if an op has no cost on any device.
  Costs(std::shared_ptr<const Graph> graph, std::shared_ptr<const Machine> machine, bool hands_over = false);
  Costs(Graph graph, Machine machine)
      : Costs(std::make_shared<Graph>(std::move(graph)), std::make_shared<Machine>(std::move(machine))) {}

  // The same costs, but every op and every tensor takes its time times its factor in the draw.
  Costs drawn(const JitterDraw& draw) const;

  const Graph& graph() const { return *graph_; }
  const Machine& machine() const { return *machine_; }

  // Returns infinity if the op cannot run on the device.
  Seconds op_time(OpId op, DeviceId device) const { return op_time_[op * device_classes_ + device_class_[device]]; }
  bool can_run(OpId op, DeviceId device) const { return op_time(op, device) < kNever; }
  // Returns 0 if src == dst.
  Seconds transfer_time(TensorId tensor, DeviceId src, DeviceId dst) const {
    if (src == dst) return 0;
    return transfer_time_[tensor * link_classes_ + link_class_[src * machine_->device_count() + dst]];
  }

  // Over the devices that can run the op; over all pairs of different devices.
  Seconds fastest(OpId op) const { return fastest_[op]; }
  Seconds mean_time(OpId op) const { return mean_[op]; }
  Seconds mean_transfer(TensorId tensor) const { return mean_transfer_[tensor]; }
  Seconds fastest_transfer(TensorId tensor) const { return fastest_transfer_[tensor]; }
  const std::vector<Seconds>& fastest_times() const { return fastest_; }
  const std::vector<Seconds>& mean_times() const { return mean_; }
  const std::vector<Seconds>& mean_transfers() const { return mean_transfer_; }

  std::size_t device_classes() const { return device_classes_; }
  std::uint32_t device_class(DeviceId device) const { return device_class_[device]; }
  std::size_t link_classes() const { return link_classes_; }
  std::uint32_t link_class(DeviceId src, DeviceId dst) const {
    return link_class_[src * machine_->device_count() + dst];
  }
  // The same times by class: all that differ are device_classes() and link_classes() many.
  Seconds class_time(OpId op, std::size_t device_class) const { return op_time_[op * device_classes_ + device_class]; }
  Seconds class_transfer_time(TensorId tensor, std::size_t link_class) const {
    return transfer_time_[tensor * link_classes_ + link_class];
  }

  static constexpr Seconds kNever = std::numeric_limits<Seconds>::infinity();

 private:
  void classify_devices();
  void classify_links();
  void fill_op_times();
  void fill_transfer_times(bool hands_over);

  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<const Machine> machine_;
  std::size_t device_classes_ = 0, link_classes_ = 0;
  std::vector<std::uint32_t> device_class_, link_class_;
  std::vector<DeviceId> class_representative_, class_size_;
  std::vector<Link> class_link_;
  std::vector<std::uint32_t> class_link_pairs_;
  std::vector<Seconds> op_time_, transfer_time_;
  std::vector<Seconds> fastest_, mean_, mean_transfer_, fastest_transfer_;
};

}  // namespace doppler
