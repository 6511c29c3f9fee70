#pragma once

#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/base/rng.h"
#include "doppler/engine/threads/threads_executor.h"

namespace doppler::test {

// Every tensor is filled with one number that follows from the numbers that its producer reads. A kernel checks every
// word of its inputs, so a copy that came too early, a buffer given away too soon or a lost input is an exception.
class CheckingKernels : public Kernels {
 public:
  // Ops in `folding` add up their inputs and can take them one by one.
  explicit CheckingKernels(const Problem& problem, std::set<OpId> folding = {})
      : shared_graph_(problem.shared_graph()),
        graph_(*shared_graph_),
        folding_(std::move(folding)),
        expected_(graph_.tensor_count()),
        runs_(graph_.op_count()) {
    for (const OpId op : graph_.topological_order()) {
      std::uint64_t value = folding_.contains(op) ? 0 : mix(7, op);
      for (const TensorId tensor : graph_.inputs(op))
        value = folding_.contains(op) ? value + expected_[tensor] : mix(value, expected_[tensor]);
      for (const TensorId tensor : graph_.outputs(op)) expected_[tensor] = value;
    }
  }

  void run(OpId op, DeviceId device, const OpBuffers& buffers) override {
    before(op, device);
    for (std::size_t i = 0; i < graph_.inputs(op).size(); ++i) check(op, i, buffers.inputs[i]);
    std::size_t output = 0;
    for (const TensorId tensor : graph_.outputs(op)) fill(tensor, buffers.outputs[output++], expected_[tensor]);
    ++runs_[op];
  }
  bool folds(OpId op) const override { return folding_.contains(op); }
  void fold(OpId op, DeviceId, std::size_t input, bool first, const OpBuffers& buffers) override {
    before(op, 0);
    check(op, input, buffers.inputs[input]);
    std::size_t output = 0;
    for (const TensorId tensor : graph_.outputs(op)) {
      std::uint64_t value = first ? 0 : word(buffers.outputs[output], graph_.bytes(tensor));
      fill(tensor, buffers.outputs[output++], value + expected_[graph_.inputs(op)[input]]);
    }
    if (first) ++runs_[op];
    ++fold_calls;
  }

  // Returns how often each op ran; each number is written by one thread at a time.
  const std::vector<int>& runs() const { return runs_; }
  std::atomic<int> fold_calls{0};

 protected:
  virtual void before(OpId, DeviceId) {}

 private:
  static std::uint64_t word(const std::byte* data, Bytes bytes) {
    std::uint64_t value = 0;
    if (bytes > 0) std::memcpy(&value, data, sizeof value);
    return value;
  }
  void check(OpId op, std::size_t input, const std::byte* data) const {
    const TensorId tensor = graph_.inputs(op)[input];
    for (Bytes at = 0; at < graph_.bytes(tensor); at += 8)
      if (word(data + at, 8) != expected_[tensor])
        throw InternalError(fmt::format("input {} is wrong at byte {}", input, at));
  }
  void fill(TensorId tensor, std::byte* data, std::uint64_t value) const {
    for (Bytes at = 0; at < graph_.bytes(tensor); at += 8) std::memcpy(data + at, &value, sizeof value);
  }

  std::shared_ptr<const Graph> shared_graph_;
  const Graph& graph_;
  std::set<OpId> folding_;
  std::vector<std::uint64_t> expected_;
  std::vector<int> runs_;
};

// Ops with up to three tensors of up to 16 KiB (many of none), read by up to four later ops.
inline Graph random_graph(Rng& rng, OpId ops) {
  GraphBuilder builder("random");
  for (OpId op = 0; op < ops; ++op) {
    OpSpec spec;
    spec.explicit_times["*"] = 1e-6 * rng.below(5);
    spec.parameter_bytes = 8 * rng.below(4);
    builder.add_op(spec);
  }
  constexpr Bytes kSizes[] = {0, 8, 64, 4096, 16384};
  for (OpId op = 0; op < ops; ++op) {
    for (std::uint32_t k = rng.below(4); k > 0; --k) {
      const TensorId tensor = builder.add_tensor(op, kSizes[rng.below(5)], 1e-6 * rng.below(5));
      std::set<OpId> consumers;
      for (std::uint32_t i = rng.below(5); i > 0 && op + 1 < ops; --i)
        consumers.insert(op + 1 + rng.below(ops - op - 1));
      for (const OpId consumer : consumers) builder.add_consumer(tensor, consumer);
    }
  }
  return std::move(builder).build();
}

inline Placement random_placement(Rng& rng, OpId ops, DeviceId devices) {
  Placement placement;
  for (OpId op = 0; op < ops; ++op) placement.device_of_op.push_back(rng.below(devices));
  return placement;
}

// Ops of one second each on any device, and edges, each its own tensor of `bytes`.
inline Graph graph_of(OpId ops, const std::vector<std::pair<OpId, OpId>>& edges, Bytes bytes, Seconds time = 1,
                      Seconds transfer = 0) {
  GraphBuilder builder("test");
  for (OpId op = 0; op < ops; ++op) builder.add_op({.explicit_times = {{"*", time}}});
  for (const auto& [src, dst] : edges) builder.add_consumer(builder.add_tensor(src, bytes, transfer), dst);
  return std::move(builder).build();
}

inline Placement on(std::vector<DeviceId> devices, std::vector<std::uint32_t> priority = {}) {
  return {std::move(devices), std::move(priority), {}};
}

inline std::vector<OpId> order_of(const Timeline& timeline, DeviceId device) {
  std::vector<OpId> order;
  for (const Timeline::Execution& execution : timeline.executions)
    if (execution.device == device) order.push_back(execution.op);
  return order;
}

// Dependencies, one op at a time per device, and one copy per tensor and destination.
inline void expect_legal(const Problem& world, const Placement& placement, const Timeline& timeline) {
  std::vector<const Timeline::Execution*> run(world.graph().op_count(), nullptr);
  std::vector<Seconds> device_free(world.machine().device_count(), 0);
  for (const Timeline::Execution& execution : timeline.executions) {
    ASSERT_EQ(run[execution.op], nullptr) << "op " << execution.op << " ran twice";
    run[execution.op] = &execution;
    EXPECT_EQ(execution.device, placement.device_of_op[execution.op]);
    EXPECT_GE(execution.start, device_free[execution.device]);
    device_free[execution.device] = execution.end;
  }
  std::set<std::pair<TensorId, DeviceId>> moved;
  for (const Timeline::Transfer& transfer : timeline.transfers) {
    EXPECT_TRUE(moved.insert({transfer.tensor, transfer.dst}).second);
    EXPECT_GE(transfer.start, run[world.graph().producer(transfer.tensor)]->end);
    for (const OpId consumer : world.graph().consumers(transfer.tensor))
      if (run[consumer]->device == transfer.dst) {
        EXPECT_GE(run[consumer]->start, transfer.end);
      }
  }
  for (TensorId tensor = 0; tensor < world.graph().tensor_count(); ++tensor) {
    const Timeline::Execution* producer = run[world.graph().producer(tensor)];
    for (const OpId consumer : world.graph().consumers(tensor)) {
      EXPECT_GE(run[consumer]->start, producer->end);
      EXPECT_EQ(moved.contains({tensor, run[consumer]->device}), run[consumer]->device != producer->device);
    }
  }
}

}  // namespace doppler::test
