#include "doppler/costs.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "doppler/base/error.h"
#include "doppler/base/roofline.h"
#include "doppler/graph/op_signature.h"
#include "doppler/machine/jitter.h"

namespace doppler {
namespace {

bool equal_but_for_name(Device a, const Device& b) {
  a.name = b.name;
  return a == b;
}

// The rate for a kind and dtype: exact on both, then kind only, then dtype only, then neither. 0: none.
double matching_rate(const Device& device, const std::string& kind, const std::string& dtype) {
  double best_rate = 0;
  int best_rank = -1;
  for (const Rate& rate : device.rates) {
    const bool kind_fits = rate.kind == kind, dtype_fits = rate.dtype == dtype;
    if ((!kind_fits && rate.kind != "*") || (!dtype_fits && rate.dtype != "*")) continue;
    const int rank = 2 * kind_fits + dtype_fits;
    if (rank > best_rank) best_rank = rank, best_rate = rate.flops_per_second;
  }
  return best_rate;
}

// NaN: the device has no rate for this op.
Seconds modelled_time(const Graph& graph, OpId op, const Device& device) {
  const Flops flops = graph.flops(op);
  const double rate = flops > 0 ? matching_rate(device, graph.kind(op), graph.dtype(op)) : 0;
  if (flops > 0 ? rate <= 0 : device.rates.empty()) return std::numeric_limits<Seconds>::quiet_NaN();
  const double traffic = static_cast<double>(graph.bytes_read(op)) + static_cast<double>(graph.bytes_written(op));
  return roofline(device.overhead, flops, rate, traffic, device.memory_bytes_per_second);
}

// Kernels that were measured, by everything that a graph says about an op. NaN: this one was not.
class MeasuredOps {
 public:
  explicit MeasuredOps(const Device& device) : slowdown_(device.slowdown) {
    for (const Measured& op : device.measured)
      seconds_[{op.kind, op.dtype, op.flops, op.bytes_read, op.bytes_written}] = op.seconds;
  }
  Seconds time(const Graph& graph, OpId op) const {
    if (seconds_.empty()) return std::numeric_limits<Seconds>::quiet_NaN();
    const auto found = seconds_.find(signature(graph, op));
    return found == seconds_.end() ? std::numeric_limits<Seconds>::quiet_NaN() : found->second;
  }
  double slowdown() const { return slowdown_; }

 private:
  std::map<OpSignature, Seconds> seconds_;
  double slowdown_;
};

std::optional<std::size_t> find_column(const Graph& graph, std::string_view type) {
  const auto types = graph.cost_types();
  const auto found = std::find(types.begin(), types.end(), type);
  if (found == types.end()) return std::nullopt;
  return static_cast<std::size_t>(found - types.begin());
}

}  // namespace

Costs::Costs(std::shared_ptr<const Graph> graph, std::shared_ptr<const Machine> machine, bool hands_over)
    : graph_(std::move(graph)), machine_(std::move(machine)) {
  classify_devices();
  classify_links();
  fill_op_times();
  fill_transfer_times(hands_over);
}

void Costs::classify_devices() {
  for (DeviceId id = 0; id < machine_->device_count(); ++id) {
    std::uint32_t found = 0;
    while (found < class_representative_.size() &&
           !equal_but_for_name(machine_->device(id), machine_->device(class_representative_[found])))
      ++found;
    if (found == class_representative_.size()) {
      class_representative_.push_back(id);
      class_size_.push_back(0);
    }
    ++class_size_[found];
    device_class_.push_back(found);
  }
  device_classes_ = class_representative_.size();
}

void Costs::classify_links() {
  const DeviceId devices = machine_->device_count();
  link_class_.assign(devices * devices, 0);
  for (DeviceId src = 0; src < devices; ++src) {
    for (DeviceId dst = 0; dst < devices; ++dst) {
      if (src == dst) continue;
      const Link& link = machine_->link(src, dst);
      const auto found = std::find(class_link_.begin(), class_link_.end(), link);
      const auto index = static_cast<std::uint32_t>(found - class_link_.begin());
      if (found == class_link_.end()) {
        class_link_.push_back(link);
        class_link_pairs_.push_back(0);
      }
      ++class_link_pairs_[index];
      link_class_[src * devices + dst] = index;
    }
  }
  link_classes_ = class_link_.size();  // 0 on a one-device machine
}

void Costs::fill_op_times() {
  const OpId n = graph_->op_count();
  op_time_.resize(n * device_classes_);
  fastest_.resize(n);
  mean_.resize(n);
  // Columns that apply to each device class, most specific first.
  std::vector<std::vector<std::size_t>> columns(device_classes_);
  for (std::size_t c = 0; c < device_classes_; ++c) {
    const std::string& type = machine_->device(class_representative_[c]).type;
    for (const std::string& name : {type, std::string(type == "cpu" ? "cpu" : "accelerator"), std::string("*")})
      if (const auto column = find_column(*graph_, name)) columns[c].push_back(*column);
  }
  std::vector<MeasuredOps> measured;
  for (const DeviceId device : class_representative_) measured.emplace_back(machine_->device(device));
  for (OpId op = 0; op < n; ++op) {
    Seconds fastest = kNever, total = 0;
    DeviceId usable = 0;
    for (std::size_t c = 0; c < device_classes_; ++c) {
      Seconds time = std::numeric_limits<Seconds>::quiet_NaN();
      for (const std::size_t column : columns[c])
        if (std::isnan(time)) time = graph_->explicit_time(op, column);
      if (std::isnan(time)) time = measured[c].time(*graph_, op);
      if (std::isnan(time)) time = modelled_time(*graph_, op, machine_->device(class_representative_[c]));
      if (std::isnan(time)) time = kNever;
      if (time != kNever) time *= measured[c].slowdown();
      if (time != kNever && time > kLargestCost)
        throw InputError(fmt::format("{}: op '{}' takes {} s on device '{}' of machine '{}'; required at most {:g}",
                                     graph_->title(), graph_->name(op), time,
                                     machine_->device(class_representative_[c]).name, machine_->name(), kLargestCost));
      op_time_[op * device_classes_ + c] = time;
      if (time == kNever) continue;
      fastest = std::min(fastest, time);
      total += time * class_size_[c];
      usable += class_size_[c];
    }
    if (usable == 0)
      throw InputError(fmt::format(
          "{}: op '{}' (kind '{}', dtype '{}') has no cost on any device of machine '{}'; required explicit "
          "times for "
          "its device types, or a machine with a rate for that kind",
          graph_->title(), graph_->name(op), graph_->kind(op), graph_->dtype(op), machine_->name()));
    fastest_[op] = fastest;
    mean_[op] = device_classes_ == 1 ? fastest : total / usable;  // one class: integers stay integers
  }
}

void Costs::fill_transfer_times(bool hands_over) {
  const TensorId tensors = graph_->tensor_count();
  transfer_time_.resize(tensors * link_classes_);
  mean_transfer_.assign(tensors, 0.0);
  fastest_transfer_.assign(tensors, 0.0);
  const double pairs = static_cast<double>(machine_->device_count()) * (machine_->device_count() - 1);
  for (TensorId tensor = 0; tensor < tensors; ++tensor) {
    const auto explicit_time = graph_->explicit_transfer(tensor);
    Seconds total = 0, fastest = kNever;
    for (std::size_t c = 0; c < link_classes_; ++c) {
      const Link& link = class_link_[c];
      Seconds time = 0;
      if (hands_over) {
        time = link.latency;
      } else if (explicit_time) {
        time = *explicit_time * link.cost_factor;
      } else {
        time = link.latency;
        if (link.bytes_per_second > 0) time += static_cast<double>(graph_->bytes(tensor)) / link.bytes_per_second;
      }
      if (!(time <= kLargestCost))
        throw InputError(fmt::format("{}: moving a tensor of op '{}' takes {} s on machine '{}'; required at most {:g}",
                                     graph_->title(), graph_->name(graph_->producer(tensor)), time, machine_->name(),
                                     kLargestCost));
      transfer_time_[tensor * link_classes_ + c] = time;
      total += time * class_link_pairs_[c];
      fastest = std::min(fastest, time);
    }
    if (link_classes_ == 0) continue;
    mean_transfer_[tensor] = link_classes_ == 1 ? fastest : total / pairs;
    fastest_transfer_[tensor] = fastest;
  }
}

Costs Costs::drawn(const JitterDraw& draw) const {
  Costs costs = *this;
  for (OpId op = 0; op < graph().op_count(); ++op) {
    const double factor = draw.op_factor(graph(), op);
    for (std::size_t c = 0; c < device_classes_; ++c) costs.op_time_[op * device_classes_ + c] *= factor;
    costs.fastest_[op] *= factor;
    costs.mean_[op] *= factor;
  }
  for (TensorId tensor = 0; tensor < graph().tensor_count(); ++tensor) {
    const double factor = draw.transfer_factor(tensor);
    for (std::size_t c = 0; c < link_classes_; ++c) costs.transfer_time_[tensor * link_classes_ + c] *= factor;
    costs.mean_transfer_[tensor] *= factor;
    costs.fastest_transfer_[tensor] *= factor;
  }
  return costs;
}

}  // namespace doppler
