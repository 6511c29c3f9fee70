#include "doppler/graph.h"

#include <gtest/gtest.h>

#include "doppler/base/error.h"

namespace doppler {
namespace {

OpSpec named(std::string name) {
  OpSpec spec;
  spec.name = std::move(name);
  return spec;
}

std::string error_of(GraphBuilder builder) {
  try {
    std::move(builder).build();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::vector<TensorId> ids(Graph::TensorRange range) {
  std::vector<TensorId> result;
  for (const TensorId tensor : range) result.push_back(tensor);
  return result;
}

template <typename T>
std::vector<T> list(std::span<const T> values) {
  return {values.begin(), values.end()};
}

// a -> b, c through one tensor; a -> d through another that was added last; b, c -> d.
Graph diamond() {
  GraphBuilder builder("diamond");
  for (const char* name : {"a", "b", "c", "d"}) builder.add_op(named(name));
  const TensorId from_b = builder.add_tensor(1, 20), from_c = builder.add_tensor(2, 30);
  const TensorId from_a = builder.add_tensor(0, 10);
  const TensorId more_from_a = builder.add_tensor(0, 11, 1.5);
  builder.add_consumer(from_c, 3);
  builder.add_consumer(from_a, 2);
  builder.add_consumer(from_a, 1);
  builder.add_consumer(from_b, 3);
  builder.add_consumer(more_from_a, 3);
  return std::move(builder).build();
}

TEST(AGraph, NumbersTheTensorsOfOneOpConsecutively) {
  // Added as b, c, a, a; sorted by producer: a's two in the order they were added, then b's, then c's.
  const Graph graph = diamond();
  EXPECT_EQ(ids(graph.outputs(0)), (std::vector<TensorId>{0, 1}));
  EXPECT_EQ(ids(graph.outputs(1)), (std::vector<TensorId>{2}));
  EXPECT_EQ(ids(graph.outputs(2)), (std::vector<TensorId>{3}));
  EXPECT_EQ(graph.outputs(3).size(), 0u);
  EXPECT_EQ(graph.bytes(0), 10u);
  EXPECT_EQ(graph.bytes(1), 11u);
  EXPECT_EQ(graph.bytes(2), 20u);
  EXPECT_EQ(graph.explicit_transfer(0), std::nullopt);
  EXPECT_EQ(graph.explicit_transfer(1), 1.5);
}

TEST(AGraph, KeepsConsumersAndInputsInTheOrderTheyWereAdded) {
  const Graph graph = diamond();
  EXPECT_EQ(list(graph.consumers(0)), (std::vector<OpId>{2, 1}));
  EXPECT_EQ(list(graph.inputs(3)), (std::vector<TensorId>{3, 2, 1}));
}

TEST(AGraph, ListsEveryEdgeOnceOnEachSide) {
  const Graph graph = diamond();
  EXPECT_EQ(graph.edge_count(), 5u);
  std::size_t inputs = 0;
  for (OpId op = 0; op < graph.op_count(); ++op) {
    inputs += graph.inputs(op).size();
    for (const TensorId tensor : graph.outputs(op)) EXPECT_EQ(graph.producer(tensor), op);
    for (const TensorId tensor : graph.inputs(op)) {
      const auto consumers = graph.consumers(tensor);
      EXPECT_EQ(std::count(consumers.begin(), consumers.end(), op), 1);
    }
  }
  EXPECT_EQ(inputs, graph.edge_count());
}

TEST(AGraph, TakesAnOrderOfInputsOtherThanThatOfTheEdges) {
  GraphBuilder builder("ordered");
  for (int i = 0; i < 3; ++i) builder.add_op({});
  const TensorId first = builder.add_tensor(0, 1), second = builder.add_tensor(1, 2);
  builder.add_consumer(first, 2);
  builder.add_consumer(second, 2);
  builder.set_input_order(2, {second, first});
  EXPECT_EQ(list(std::move(builder).build().inputs(2)), (std::vector<TensorId>{1, 0}));
}

TEST(AGraph, OrdersTopologicallyAndByIdWhereItCan) {
  // Edges 3 -> 0 and 0 -> 2: op 0 must wait for 3; 1 comes first because it is free and smallest.
  GraphBuilder builder("order");
  for (int i = 0; i < 4; ++i) builder.add_op({});
  builder.add_consumer(builder.add_tensor(3, 1), 0);
  builder.add_consumer(builder.add_tensor(0, 1), 2);
  EXPECT_EQ(list(std::move(builder).build().topological_order()), (std::vector<OpId>{1, 3, 0, 2}));
}

TEST(AGraph, FindsOpsByName) {
  GraphBuilder builder("names");
  for (int i = 0; i < 1000; ++i) builder.add_op({});
  builder.add_op(named("the last"));
  const Graph graph = std::move(builder).build();
  for (OpId op = 0; op < 1000; ++op) EXPECT_EQ(graph.find_op(fmt::format("op{}", op)), op);
  EXPECT_EQ(graph.op_by_name("the last"), 1000u);
  EXPECT_EQ(graph.find_op("op1000"), graph.op_count());
  try {
    graph.op_by_name("nobody");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "names: no op named 'nobody'; required one of its 1001 ops");
  }
}

TEST(AGraph, NumbersGroupsByFirstAppearanceAndKeepsTheirNames) {
  GraphBuilder builder("groups");
  for (const char* group : {"", "y", "", "x", "y", ""}) {
    OpSpec spec;
    spec.group = group;
    builder.add_op(std::move(spec));
  }
  const Graph graph = std::move(builder).build();
  ASSERT_EQ(graph.group_count(), 2u);
  EXPECT_EQ(graph.group_name(0), "y");
  EXPECT_EQ(graph.group_name(1), "x");
  EXPECT_EQ(graph.group(0), Graph::kNoGroup);
  EXPECT_EQ(graph.group(1), 0u);
  EXPECT_EQ(graph.group(3), 1u);
  EXPECT_EQ(graph.group(4), 0u);
  EXPECT_EQ(graph.group(5), Graph::kNoGroup);
  EXPECT_EQ(diamond().group(0), Graph::kNoGroup);
}

TEST(AGraph, HasOneColumnOfTimesPerDeviceType) {
  GraphBuilder builder("times");
  OpSpec spec;
  builder.add_op(spec);
  spec.explicit_times = {{"gpu", 2.0}, {"cpu", std::numeric_limits<Seconds>::infinity()}};
  builder.add_op(spec);
  spec.explicit_times = {{"cpu", 3.0}};
  builder.add_op(spec);
  builder.add_op({});
  const Graph graph = std::move(builder).build();
  EXPECT_EQ(list(graph.cost_types()), (std::vector<std::string>{"cpu", "gpu"}));
  for (const auto& [op, column] : {std::pair<OpId, std::size_t>(0, 0), {0, 1}, {2, 1}, {3, 0}, {3, 1}})
    EXPECT_TRUE(std::isnan(graph.explicit_time(op, column))) << op << " " << column;
  EXPECT_TRUE(std::isinf(graph.explicit_time(1, 0)));
  EXPECT_EQ(graph.explicit_time(1, 1), 2.0);
  EXPECT_EQ(graph.explicit_time(2, 0), 3.0);
}

TEST(AGraph, KeepsKindsAndDtypesApart) {
  GraphBuilder builder("kinds");
  for (const char* kind : {"matmul", "f32", "matmul"}) {
    OpSpec spec;
    spec.kind = kind;
    builder.add_op(std::move(spec));
  }
  const Graph graph = std::move(builder).build();
  EXPECT_EQ(graph.kind(1), "f32");
  EXPECT_EQ(graph.dtype(0), "f32");
  EXPECT_EQ(graph.kind_id(0), graph.kind_id(2));
  EXPECT_NE(graph.kind_id(0), graph.kind_id(1));
}

TEST(ABuilder, RefusesIdsThatDoNotExist) {
  GraphBuilder builder("file");
  builder.add_op({});
  builder.add_op({});
  const TensorId tensor = builder.add_tensor(0, 1);
  EXPECT_THROW(builder.add_tensor(2, 1), InputError);
  EXPECT_THROW(builder.add_consumer(tensor, 2), InputError);
  EXPECT_THROW(builder.add_consumer(tensor + 1, 1), InputError);
  EXPECT_THROW(builder.add_consumer(tensor, 0), InputError);  // its own output
  EXPECT_THROW(builder.set_input_order(2, {}), InputError);
}

TEST(ABuilder, RefusesCostsThatAreNegativeHugeOrNotANumber) {
  GraphBuilder builder("file");
  builder.add_op({});
  for (const double bad : {-1.0, 2e18, std::nan(""), std::numeric_limits<double>::infinity()}) {
    OpSpec flops;
    flops.flops = bad;
    EXPECT_THROW(builder.add_op(flops), InputError) << bad;
    EXPECT_THROW(builder.add_tensor(0, 1, bad), InputError) << bad;
    OpSpec time;
    time.explicit_times["*"] = bad;
    EXPECT_THROW(builder.add_op(time), InputError) << bad;  // infinity everywhere: it runs nowhere
  }
  OpSpec bytes;
  bytes.parameter_bytes = ~Bytes{0};
  EXPECT_THROW(builder.add_op(bytes), InputError);
  EXPECT_THROW(builder.add_tensor(0, ~Bytes{0}), InputError);
}

TEST(ABuilder, TakesNegativeZeroForZero) {
  GraphBuilder builder("file");
  OpSpec spec;
  spec.flops = -0.0;
  spec.explicit_times["*"] = -0.0;
  builder.add_op(spec);
  builder.add_tensor(0, 0, -0.0);
  const Graph graph = std::move(builder).build();
  EXPECT_FALSE(std::signbit(graph.flops(0)));
  EXPECT_FALSE(std::signbit(graph.explicit_time(0, 0)));
  EXPECT_FALSE(std::signbit(*graph.explicit_transfer(0)));
}

TEST(ABuilder, RefusesAnEmptyGraphEqualNamesAndDuplicateEdges) {
  EXPECT_EQ(error_of(GraphBuilder("file")), "file: the graph has no ops; required at least one");
  GraphBuilder twins("file");
  twins.add_op(named("twin"));
  twins.add_op(named("other"));
  twins.add_op(named("twin"));
  EXPECT_EQ(error_of(std::move(twins)), "file: two ops are named 'twin'; required unique names");
  GraphBuilder twice("file");
  twice.add_op(named("a"));
  twice.add_op(named("b"));
  const TensorId tensor = twice.add_tensor(0, 1);
  twice.add_consumer(tensor, 1);
  twice.add_consumer(tensor, 1);
  EXPECT_EQ(error_of(std::move(twice)), "file: op 'b' reads an output of op 'a' twice; required each edge once");
}

TEST(ABuilder, PrintsTheCycleAndNothingBesideIt) {
  // 0 -> 1 -> 2 -> 1 and 2 -> 3: the cycle is 1, 2, whatever leads to it or away from it.
  GraphBuilder builder("file");
  for (int i = 0; i < 4; ++i) builder.add_op({});
  builder.add_consumer(builder.add_tensor(0, 1), 1);
  builder.add_consumer(builder.add_tensor(1, 1), 2);
  const TensorId from_2 = builder.add_tensor(2, 1);
  builder.add_consumer(from_2, 1);
  builder.add_consumer(from_2, 3);
  EXPECT_EQ(error_of(std::move(builder)), "file: cycle 'op2' -> 'op1' -> 'op2'; required an acyclic graph");
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr OpId kDeep = 1'000'000;  // sanitizers need several times the memory
#else
constexpr OpId kDeep = 10'000'000;
#endif

TEST(ABuilder, BuildsAChainOfTenMillionOpsWithoutRecursion) {
  GraphBuilder builder("chain");
  for (OpId op = 0; op < kDeep; ++op) {
    builder.add_op({});
    builder.add_tensor(op, 1);
    if (op > 0) builder.add_consumer(op - 1, op);
  }
  const Graph graph = std::move(builder).build();
  EXPECT_EQ(graph.edge_count(), kDeep - 1);
  EXPECT_EQ(graph.topological_order().back(), kDeep - 1);
}

TEST(ABuilder, PrintsACycleOfAMillionOpsInShort) {
  constexpr OpId kOps = 1'000'000;
  GraphBuilder builder("ring");
  for (OpId op = 0; op < kOps; ++op) {
    builder.add_op({});
    builder.add_tensor(op, 1);
    if (op > 0) builder.add_consumer(op - 1, op);
  }
  builder.add_consumer(kOps - 1, 0);
  EXPECT_EQ(error_of(std::move(builder)),
            "ring: cycle 'op1' -> 'op2' -> 'op3' -> 'op4' -> 'op5' -> 'op6' -> 'op7' -> 'op8' -> … (999992 "
            "more) -> "
            "'op1'; required an acyclic graph");
}

}  // namespace
}  // namespace doppler
