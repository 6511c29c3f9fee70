#include "doppler/costs.h"

#include <gtest/gtest.h>

#include "doppler/base/error.h"

namespace doppler {
namespace {

constexpr double kTera = 1e12;

Device device(std::string name, std::string type) {
  Device result;
  result.name = std::move(name);
  result.type = std::move(type);
  return result;
}

// 1 Tflop/s for anything, 4 for matmul, 2 for f16, 8 for matmul in f16; 100 GB/s; 10 µs per op.
Device accelerator(std::string name) {
  Device result = device(std::move(name), "gpu");
  result.rates = {
      {"*", "*", 1 * kTera}, {"matmul", "*", 4 * kTera}, {"*", "f16", 2 * kTera}, {"matmul", "f16", 8 * kTera}};
  result.memory_bytes_per_second = gigabytes_per_second(100);
  result.overhead = microseconds(10);
  return result;
}

Machine machine_of(std::vector<Device> devices, Link link = {}) {
  const std::size_t n = devices.size();
  return Machine("m", std::move(devices), std::vector<Link>(n * n, link));
}

Graph one_op(OpSpec spec) {
  GraphBuilder builder("test");
  builder.add_op(std::move(spec));
  return std::move(builder).build();
}

Seconds time_on_accelerator(OpSpec spec) {
  const Graph graph = one_op(std::move(spec));
  const Machine machine = machine_of({accelerator("gpu0")});
  return Costs(graph, machine).op_time(0, 0);
}

TEST(Costs, AreARooflineOfFlopsAndMemoryTraffic) {
  // Compute-bound: 10 µs + max(2e9 / 1e12 = 2 ms, (1e6 + 1e6) / 1e11 = 20 µs) = 2.01 ms
  EXPECT_DOUBLE_EQ(time_on_accelerator({.flops = 2e9, .bytes_read = 1'000'000, .bytes_written = 1'000'000}),
                   milliseconds(2.01));
  // Memory-bound: 10 µs + max(1e6 / 1e12 = 1 µs, (3e8 + 1e8) / 1e11 = 4 ms) = 4.01 ms
  EXPECT_DOUBLE_EQ(time_on_accelerator({.flops = 1e6, .bytes_read = 300'000'000, .bytes_written = 100'000'000}),
                   milliseconds(4.01));
  // Neither: the overhead alone
  EXPECT_DOUBLE_EQ(time_on_accelerator({}), microseconds(10));
}

TEST(Costs, TakeTheMostSpecificRateKindBeforeDtype) {
  // 8e9 flops at 8, 4, 2 and 1 Tflop/s, plus 10 µs
  EXPECT_DOUBLE_EQ(time_on_accelerator({.kind = "matmul", .dtype = "f16", .flops = 8e9}), milliseconds(1.01));
  EXPECT_DOUBLE_EQ(time_on_accelerator({.kind = "matmul", .dtype = "f32", .flops = 8e9}), milliseconds(2.01));
  EXPECT_DOUBLE_EQ(time_on_accelerator({.kind = "add", .dtype = "f16", .flops = 8e9}), milliseconds(4.01));
  EXPECT_DOUBLE_EQ(time_on_accelerator({.kind = "add", .dtype = "f32", .flops = 8e9}), milliseconds(8.01));
}

TEST(Costs, PreferExplicitTimesByTypeThenAcceleratorThenAny) {
  const Machine machine = machine_of({device("a", "gpu"), device("b", "tpu"), device("c", "cpu")});
  const Graph exact = one_op({.explicit_times = {{"gpu", 1}, {"accelerator", 2}, {"*", 3}}});
  const Costs costs(exact, machine);
  EXPECT_EQ(costs.op_time(0, 0), 1.0);  // its own type
  EXPECT_EQ(costs.op_time(0, 1), 2.0);  // no "tpu", but not a cpu
  EXPECT_EQ(costs.op_time(0, 2), 3.0);  // a cpu is no accelerator
  EXPECT_EQ(costs.fastest(0), 1.0);
  EXPECT_EQ(costs.mean_time(0), 2.0);  // (1 + 2 + 3) / 3
}

TEST(Costs, KnowWhereAnOpCannotRun) {
  const Machine machine = machine_of({device("a", "gpu"), device("b", "cpu")});
  const Graph graph = one_op({.explicit_times = {{"accelerator", Costs::kNever}, {"cpu", 5}}});
  const Costs costs(graph, machine);
  EXPECT_FALSE(costs.can_run(0, 0));
  EXPECT_TRUE(costs.can_run(0, 1));
  EXPECT_EQ(costs.mean_time(0), 5.0);  // over the devices that can run it
}

TEST(Costs, RefuseAnOpWithoutACostAnywhere) {
  const Graph graph = one_op({.name = "x", .flops = 1});
  const Machine machine("bare", {{.name = "a", .type = "gpu", .rates = {}}, {.name = "b", .type = "gpu", .rates = {}}},
                        std::vector<Link>(4));
  try {
    Costs costs(graph, machine);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("op 'x' (kind 'op', dtype 'f32') has no cost on any device of machine "
                        "'bare'; required explicit times"),
              std::string::npos)
        << error.what();
  }
}

// a -> b by bytes, a -> c by an explicit time
Graph two_tensors() {
  GraphBuilder builder("test");
  for (int i = 0; i < 3; ++i) builder.add_op({.explicit_times = {{"*", 1}}});
  builder.add_consumer(builder.add_tensor(0, 2'000'000), 1);
  builder.add_consumer(builder.add_tensor(0, 2'000'000, 7.0), 2);
  return std::move(builder).build();
}

TEST(Costs, FollowUnequalLinks) {
  std::vector<Link> links(9, Link{.latency = microseconds(5), .bytes_per_second = gigabytes_per_second(1)});
  links[0 * 3 + 2] = {.latency = microseconds(5), .bytes_per_second = gigabytes_per_second(4), .cost_factor = 2};
  const Machine machine("m", {device("a", "x"), device("b", "x"), device("c", "x")}, links);
  const Graph graph = two_tensors();
  const Costs costs(graph, machine);
  EXPECT_DOUBLE_EQ(costs.transfer_time(0, 0, 1), milliseconds(2.005));  // 5 µs + 2 MB / 1 GB/s
  EXPECT_DOUBLE_EQ(costs.transfer_time(0, 0, 2), milliseconds(0.505));  // 5 µs + 2 MB / 4 GB/s
  EXPECT_DOUBLE_EQ(costs.transfer_time(0, 2, 0), milliseconds(2.005));  // the way back is a link of its own
  EXPECT_EQ(costs.transfer_time(0, 1, 1), 0.0);
  EXPECT_EQ(costs.transfer_time(1, 0, 1), 7.0);   // explicit: as given
  EXPECT_EQ(costs.transfer_time(1, 0, 2), 14.0);  // explicit: through the host
  EXPECT_EQ(costs.link_classes(), 2u);
  EXPECT_DOUBLE_EQ(costs.mean_transfer(1), (5 * 7.0 + 14.0) / 6);  // six ordered pairs, one of them slow
  EXPECT_DOUBLE_EQ(costs.fastest_transfer(0), milliseconds(0.505));
}

TEST(Costs, KeepIntegersExactOnEqualDevices) {
  // 3 equal devices: a mean computed as (3 * t) / 3 could round; published makespans must match as integers.
  constexpr double kOdd = 9007199254740991.0;  // 2^53 - 1
  GraphBuilder builder("test");
  for (int i = 0; i < 2; ++i) builder.add_op({.explicit_times = {{"*", kOdd}}});
  builder.add_consumer(builder.add_tensor(0, 0, kOdd), 1);
  const Graph graph = std::move(builder).build();
  const Machine machine = uniform_machine(3);
  const Costs costs(graph, machine);
  EXPECT_EQ(costs.device_classes(), 1u);
  EXPECT_EQ(costs.mean_time(0), kOdd);
  EXPECT_EQ(costs.fastest(1), kOdd);
  EXPECT_EQ(costs.mean_transfer(0), kOdd);
}

TEST(Costs, OfASingleDeviceHaveNoLinks) {
  const Graph graph = two_tensors();
  const Machine machine = uniform_machine(1);
  const Costs costs(graph, machine);
  EXPECT_EQ(costs.link_classes(), 0u);
  EXPECT_EQ(costs.transfer_time(0, 0, 0), 0.0);
  EXPECT_EQ(costs.mean_transfer(0), 0.0);
}

}  // namespace
}  // namespace doppler
