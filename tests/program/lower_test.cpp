#include "doppler/program/lower/lower.h"

#include "tests/program/random_program.h"

namespace doppler::program {
namespace {

// Sums of a few hundred terms in double precision, in another order.
constexpr double kLoweringTolerance = 1e-9;

Flops total_flops(const Graph& graph) {
  Flops result = 0;
  for (OpId op = 0; op < graph.op_count(); ++op) result += graph.flops(op);
  return result;
}

TEST(Lowering, CutsAMatrixProductInBlocksWithExactFlopsAndBytes) {
  Program p;
  const Expr x = p.input("x", {8, 6}), w = p.weight("w", {6, 4});
  const Expr h = p.map({x}, relu(Scalar::argument(0)), "h");
  p.mark_output(p.einsum("ij,jk->ik", {h, w}, {.name = "y"}));
  Plan plan = uncut(p);
  plan[h.id] = {2, 1};
  plan[h.id + 1] = {2, 1, 3};  // i, k, j
  complete(p, plan);
  const Lowered lowered = lower(p, plan);
  const Graph& g = lowered.graph;
  ASSERT_EQ(g.op_count(), 2u + 6u + 2u);
  EXPECT_EQ(g.name(4), "y.partial[0,0,2]");
  EXPECT_EQ(g.kind(4), "matmul");
  // Block 4 × 4 × 2: 32 products, 32 - 16 sums; reads 4 × 2 of h and 2 × 4 of w, which is resident.
  EXPECT_EQ(g.flops(4), 48);
  EXPECT_EQ(g.bytes_read(4), 64u);
  EXPECT_EQ(g.parameter_bytes(4), 32u);
  EXPECT_EQ(g.bytes_written(4), 64u);
  // Only the 4 × 2 rectangle travels.
  ASSERT_EQ(g.inputs(4).size(), 1u);
  EXPECT_EQ(g.bytes(g.inputs(4)[0]), 32u);
  // A formation folds three partial 4 × 4 blocks.
  EXPECT_EQ(g.name(8), "y[0,0]");
  EXPECT_EQ(g.inputs(8).size(), 3u);
  EXPECT_EQ(g.flops(8), 32);
}

TEST(Lowering, GivesTheSameFlopsForEveryPlan) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    Program p;
    random_program(p, rng, 12);
    const Flops expected = total_flops(lower(p, uncut(p)).graph);
    EXPECT_DOUBLE_EQ(total_flops(lower(p, random_plan(p, rng)).graph), expected) << seed;
  }
}

TEST(Lowering, ComputesWhatTheDenseReferenceComputes) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    Program p;
    random_program(p, rng, 10);
    const Values inputs = random_inputs(p, seed + 1000);
    const std::vector<Dense> expected = evaluate(p, inputs);
    const CostMode modes[] = {CostMode::per_block, CostMode::published, CostMode::seconds};
    const Lowered lowered = lower(p, random_plan(p, rng), {.costs = modes[seed % 3]});
    for (const auto& [id, value] : run_lowered(p, lowered, inputs)) {
      double scale = 1;
      for (const auto& v : expected[id].values) scale = std::max(scale, std::abs(v));
      EXPECT_LE(largest_difference(value, expected[id]), kLoweringTolerance * scale) << seed << " " << p.node(id).name;
    }
  }
}

TEST(Lowering, KeepsUpdatedInputsBesideTheirNextValueAndCutAlike) {
  Program p;
  const Expr w = p.weight("w", {4, 4}), g = p.input("g", {4, 4});
  p.mark_update(w, p.map({w, g}, Scalar::argument(0) - 0.1 * Scalar::argument(1), "next"));
  Plan plan = uncut(p);
  plan[2] = {2, 1};
  EXPECT_EQ(message_of([&] { lower(p, plan); }),
            "plan: 'w' of [4, 4] is cut [1, 1]; required the cuts of its next value, [2, 1]");
  complete(p, plan);
  const Graph graph = lower(p, plan).graph;
  ASSERT_EQ(graph.op_count(), 4u);  // two blocks of w, two of next; g is resident
  EXPECT_EQ(graph.group(graph.op_by_name("w[1,0]")), graph.group(graph.op_by_name("next[1,0]")));
  EXPECT_NE(graph.group(graph.op_by_name("w[1,0]")), graph.group(graph.op_by_name("next[0,0]")));
}

TEST(Lowering, LeavesOutWhatNoOutputNeeds) {
  Program p;
  const Expr x = p.input("x", {4});
  p.map({x}, exp(Scalar::argument(0)), "unused");
  p.mark_output(p.map({x}, log(Scalar::argument(0)), "used"));
  EXPECT_EQ(lower(p, uncut(p)).graph.op_count(), 1u);
}

TEST(Lowering, RefusesAPlanThatDoesNotFit) {
  Program p;
  const Expr x = p.input("x", {4, 2});
  p.map({x}, Scalar::argument(0) * 2, "y");
  Plan plan = uncut(p);
  plan[1] = {1, 3};
  EXPECT_EQ(message_of([&] { lower(p, plan); }),
            "plan: 'y' of [4, 2] is cut [1, 3]; required between 1 piece and one per element");
  plan[1] = {1};
  EXPECT_EQ(message_of([&] { lower(p, plan); }),
            "plan: 'y' of [4, 2] is cut [1]; required one number of pieces per label");
}

TEST(Lowering, TurnsBlocksIntoSecondsOnRequest) {
  Program p;
  const Expr x = p.input("x", {1000}, DType::f32);
  const Expr y = p.map({x}, exp(Scalar::argument(0)), "y");
  p.mark_output(p.map({y}, exp(Scalar::argument(0)), "z"));
  Speeds speeds{.flops_per_second = 1e3,
                .memory_bytes_per_second = 1e9,
                .link_bytes_per_second = 1e3,
                .latency = 1,
                .overhead = 2};
  const Graph graph = lower(p, uncut(p), {.costs = CostMode::seconds, .speeds = speeds}).graph;
  EXPECT_DOUBLE_EQ(graph.explicit_time(0, 0), 2 + 1);             // 1000 flops at 1000 per second
  EXPECT_DOUBLE_EQ(graph.explicit_transfer(0).value(), 1 + 4.0);  // 4000 bytes
  EXPECT_EQ(parse_cost_mode("seconds"), CostMode::seconds);
  EXPECT_EQ(message_of([] { parse_cost_mode("fast"); }),
            "costs: found 'fast'; required per-block, published or seconds");
}

}  // namespace
}  // namespace doppler::program
