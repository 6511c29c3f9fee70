#pragma once

#include <span>
#include <vector>

#include "doppler/problem.h"

namespace doppler {

// Makespans of strictly ordered placements that differ a little from a current one: what a local search asks
// for. Same result as Simulator with Discipline::ordered, for topological orders, free links and one slot per
// device.
//
// In a fixed order an op's times depend only on the ops before it. So a changed placement is evaluated from
// the first position that changed; the evaluation ends as soon as the devices are where they were before and
// nothing that changed is still to be read (the makespan is then the current one), or as soon as a limit is
// certainly exceeded.
class OrderedEvaluator {
 public:
  static bool supports(const Problem& problem);

  explicit OrderedEvaluator(const Problem& problem);

  // Evaluates from scratch; this placement is now the current one. `order` lists the ops, `rank` is its
  // inverse.
  Seconds reset(std::span<const DeviceId> device_of_op, std::span<const OpId> order,
                std::span<const std::uint32_t> rank);

  // Evaluates a placement that differs from the current one in positions `first` to `last` of the order only.
  // If its makespan is within `limit` it is now the current one; otherwise the answer is infinity and nothing
  // has changed.
  Seconds change(std::span<const DeviceId> device_of_op, std::span<const OpId> order,
                 std::span<const std::uint32_t> rank, std::uint32_t first, std::uint32_t last, Seconds limit);

 private:
  // The devices' times are kept before every kStride-th position; in between they follow from the ends of the
  // ops.
  static constexpr std::uint32_t kStride = 16;

  struct Input {
    Seconds transfer;  // on the only link class, if there is only one
    OpId producer;
    TensorId tensor;
  };

  template <bool Uniform>
  Seconds evaluate(const DeviceId* device_of_op, const OpId* order, const std::uint32_t* rank, std::uint32_t first,
                   std::uint32_t last, Seconds limit);
  template <bool Uniform>
  Seconds start_of(OpId op, const DeviceId* device_of_op) const;
  // Restores the ends of positions [first, position); the answer of change() then.
  Seconds take_back(const OpId* order, std::uint32_t first, std::uint32_t position);
  void load_free_at(const OpId* order, std::uint32_t position);

  Problem problem_;
  const OpId op_count_;
  const DeviceId device_count_;
  const std::size_t device_classes_;
  bool uniform_;
  std::vector<Seconds> time_;  // op × device class
  std::vector<std::uint32_t> device_class_;
  std::vector<Seconds> tail_;  // the longest path behind an op, by fastest times
  std::vector<Input> inputs_;
  std::vector<std::uint32_t> input_begin_;
  std::vector<OpId> consumers_;
  std::vector<std::uint32_t> consumer_begin_;

  // The current placement.
  std::vector<DeviceId> device_of_op_;
  std::vector<Seconds> end_;        // per op
  std::vector<Seconds> snapshots_;  // when each device is free, before every kStride-th position
  Seconds makespan_ = 0;
  // The evaluation in progress.
  std::vector<Seconds> free_at_, old_end_, new_snapshots_;
};

}  // namespace doppler
