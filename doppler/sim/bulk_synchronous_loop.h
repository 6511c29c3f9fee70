#pragma once

#include <algorithm>
#include <numeric>

#include "doppler/graph/levels.h"
#include "doppler/sim/channel_clock.h"
#include "doppler/sim/sim_tables.h"

namespace doppler {

// The contrast to work conservation: ops run level by level (longest distance from a source). In a superstep
// every device runs its ops of the level, in id order; when all are done, their outputs move; when all have
// arrived, the next superstep begins. Ranks are not read. Internal to doppler/sim.
class BulkSynchronousLoop {
 public:
  explicit BulkSynchronousLoop(const SimTables& tables)
      : tables_(tables),
        clock_(tables),
        channels_(tables),
        order_(tables.op_count()),
        depth_(depths(tables.problem().graph())) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](OpId a, OpId b) { return depth_[a] < depth_[b]; });
    last_moved_.resize(tables.device_count());
  }

  template <typename Recorder>
  Seconds run(std::span<const DeviceId> device_of_op, Recorder& recorder) {
    std::fill(last_moved_.begin(), last_moved_.end(), std::numeric_limits<TensorId>::max());
    clock_.clear();
    channels_.clear();
    Seconds step_begin = 0, makespan = 0;
    for (std::size_t first = 0, last = 0; first < order_.size(); first = last) {
      while (last < order_.size() && depth_[order_[last]] == depth_[order_[first]]) ++last;
      Seconds computed = step_begin;
      for (std::size_t i = first; i < last; ++i)
        computed = std::max(computed, execute(order_[i], device_of_op[order_[i]], step_begin, recorder));
      makespan = step_begin = computed;
      for (std::size_t i = first; i < last; ++i)
        step_begin = std::max(step_begin, move_outputs(order_[i], device_of_op, computed, recorder));
    }
    return makespan;
  }

 private:
  template <typename Recorder>
  Seconds execute(OpId op, DeviceId device, Seconds step_begin, Recorder& recorder) {
    const std::uint32_t slot = clock_.first_free(device);
    const Seconds start = std::max(step_begin, clock_.free_at(device, slot));
    const Seconds end = start + tables_.op_time(op, device);
    clock_.free_at(device, slot) = end;
    recorder.execution(op, device, slot, step_begin, start, end);
    return end;
  }

  template <typename Recorder>
  Seconds move_outputs(OpId op, std::span<const DeviceId> device_of_op, Seconds computed, Recorder& recorder) {
    Seconds arrived = computed;
    const DeviceId src = device_of_op[op];
    for (const SimTables::Edge& edge : tables_.edges(op)) {
      const DeviceId dst = device_of_op[edge.consumer];
      if (dst == src || last_moved_[dst] == edge.tensor) continue;
      last_moved_[dst] = edge.tensor;
      const auto grant = channels_.transfer(src, dst, computed, tables_.transfer_time(edge, src, dst));
      recorder.transfer(edge.tensor, src, dst, grant.channel, computed, grant.start, grant.end);
      arrived = std::max(arrived, grant.end);
    }
    return arrived;
  }

  const SimTables& tables_;
  SlotClock clock_;
  ChannelClock channels_;
  std::vector<OpId> order_;  // by level, then id
  std::vector<std::uint32_t> depth_;
  std::vector<TensorId> last_moved_;  // per destination
};

}  // namespace doppler
