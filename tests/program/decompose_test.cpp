#include "doppler/program/cut/decompose.h"

#include "doppler/program/expr/workloads.h"
#include "tests/program/random_program.h"

namespace doppler::program {
namespace {

// Rounding of single-precision tables.
constexpr double kDecomposeTolerance = 1e-5;

// All plans of a program whose expressions have few boxes, by counting.
double best_by_enumeration(const Program& p, const DecomposeOptions& options) {
  std::vector<ExprId> variables;
  std::vector<std::vector<Box>> boxes;
  for (ExprId id = 0; id < p.size(); ++id) {
    if (p.node(id).as<Input>() != nullptr || p.node(id).as<Formation>() != nullptr) continue;
    variables.push_back(id);
    boxes.emplace_back();
    const Shape& shape = p.node(id).join_shape();
    for_each_index({Shape(shape.size(), 1), Shape(shape.size(), options.parts + 1)}, [&](const Box& box) {
      bool fits = options.parts % product(box) == 0;
      for (std::size_t i = 0; i < box.size(); ++i) fits = fits && box[i] <= shape[i];
      if (fits) boxes.back().push_back(box);
    });
  }
  Rect space;
  for (const auto& candidates : boxes) {
    space.begin.push_back(0);
    space.end.push_back(static_cast<Index>(candidates.size()));
  }
  double best = 1e300;
  for_each_index(space, [&](const std::vector<Index>& choice) {
    Plan plan = uncut(p);
    for (std::size_t v = 0; v < variables.size(); ++v)
      plan[variables[v]] = boxes[v][static_cast<std::size_t>(choice[v])];
    complete(p, plan);
    best = std::min(best, estimate(p, plan, options).seconds);
  });
  return best;
}

TEST(EinDecomp, IsOptimalOnAChain) {
  for (const Index parts : {2, 4, 6}) {
    Program p;
    const Expr x = p.input("x", {600, 300}), w = p.weight("w", {300, 1200}), v = p.weight("v", {1200, 60});
    p.mark_output(p.einsum("ij,jk->ik", {p.map({p.einsum("ij,jk->ik", {x, w})}, relu(Scalar::argument(0))), v}));
    const DecomposeOptions options{.parts = parts};
    EXPECT_NEAR(decompose(p, options)[0].cost.seconds / best_by_enumeration(p, options), 1, kDecomposeTolerance)
        << parts;
  }
}

TEST(EinDecomp, FindsTheOptimumWhereAResultIsSharedToo) {
  Program p;
  const Expr x = p.input("x", {600, 300});
  const Expr a = p.map({x}, exp(Scalar::argument(0)), "a");
  const Expr b = p.einsum("ij->i", {a}, {.name = "b"});
  p.mark_output(p.einsum("ij,i->ji", {a, b}, {.name = "c"}));
  const DecomposeOptions options{.parts = 8};
  EXPECT_NEAR(decompose(p, options)[0].cost.seconds / best_by_enumeration(p, options), 1, kDecomposeTolerance);
}

TEST(APlan, IsChargedForCopiesPartialResultsAndRepartition) {
  Program p;
  const Expr x = p.input("x", {8, 8});
  const Expr a = p.map({x}, exp(Scalar::argument(0)), "a");
  p.mark_output(p.einsum("ij,kj->ik", {a, a}, {.name = "b"}));
  const DecomposeOptions options{.parts = 4};
  Plan plan = uncut(p);
  plan[1] = {2, 2};
  plan[2] = {2, 1, 2};  // i, k, j
  complete(p, plan);
  const PlanCost cost = estimate(p, plan, options);
  // a is 256 bytes. As a[i, j] it comes cut 2 × 2 and is read once: nothing moves. As a[k, j] it is needed as
  // 1 × 2 blocks in 4/2 copies; half of each stays (2 pieces become one): 256·(2 - 1/2). The product moves
  // one partial result: 256·(4/2 - 1).
  EXPECT_DOUBLE_EQ(cost.moved, 256 * 1.5 + 256);
  // Repartition: 4 blocks read 2 pieces each; partial results: 4 - 2.
  EXPECT_DOUBLE_EQ(cost.messages, 8 + 2);
  // x is 256 bytes, read once.
  EXPECT_DOUBLE_EQ(cost.resident, 256);
}

TEST(EinDecomp, BeatsDataParallelModelParallelAndThePublishedBoxesByItsOwnMeasure) {
  Program p;
  LlamaOptions llama_options;
  llama_options.part = LlamaOptions::Part::block;
  llama(p, llama_options);
  const DecomposeOptions options{.parts = 8};
  const double found = decompose(p, options)[0].cost.seconds;
  EXPECT_LT(found, estimate(p, data_parallel(p, 8), options).seconds);
  EXPECT_LT(found, estimate(p, model_parallel(p, 8), options).seconds);
  EXPECT_LT(found, estimate(p, published_plan(p, Family::llama_block, 8), options).seconds);
}

TEST(EinDecomp, FindsTheBatchWhereASearchFromOneForestEndsInTheSequence) {
  Program p;
  const Expr x = p.input("x", {8, 1024, 16, 64});
  const auto project = [&](const char* name) {
    return p.einsum("bshd,HEhd->bsHE", {x, p.weight(name, {16, 64, 16, 64})});
  };
  const Expr q = project("wq"), k = project("wk"), v = project("wv");
  p.mark_output(attention(q, k, v, causal_mask(p, 1024, DType::f32)));
  const DecomposeOptions options{.parts = 4};
  EXPECT_LE(decompose(p, options)[0].cost.seconds, estimate(p, data_parallel(p, 4), options).seconds);
}

TEST(EinDecomp, CutsWeightsWhenTheyDoNotFit) {
  Program p;
  feed_forward(p, {.batch = 2048, .input = 512, .hidden = 2048, .output = 512, .layers = 6});
  DecomposeOptions options{.parts = 4};
  const double free = decompose(p, options)[0].cost.resident;
  options.speeds.memory = static_cast<Bytes>(free / 4 / 2);
  const Decomposition tight = decompose(p, options)[0];
  EXPECT_LE(tight.cost.resident, 4 * static_cast<double>(options.speeds.memory));
  options.speeds.memory = 1 << 20;
  EXPECT_THROW(decompose(p, options), InfeasibleError);
}

TEST(EinDecomp, UsesPartsThatAreNoPowerOfTwo) {
  Program p;
  p.mark_output(matmul(p.input("x", {999, 64}), p.weight("w", {64, 64})));
  const Plan plan = decompose(p, {.parts = 3})[0].plan;
  EXPECT_EQ(plan[2], (Box{3, 1, 1}));
}

TEST(EinDecomp, CutsAnUpdatedWeightLikeItsNextValue) {
  Program p;
  const Expr x = p.input("x", {512, 512}), w = p.weight("w", {512, 512});
  const Expr y = matmul(x, w);
  p.mark_update(w, p.map({w, y}, Scalar::argument(0) - Scalar::argument(1), "next"));
  const Plan plan = decompose(p, {.parts = 4})[0].plan;
  EXPECT_EQ(plan[w.id], plan.back());
  EXPECT_NO_THROW(lower(p, plan));
}

TEST(EinDecomp, ReturnsDistinctPlansBestFirstAndAlwaysTheSame) {
  Program p;
  LlamaOptions llama_options;
  llama_options.sequence = 512;
  llama(p, llama_options);
  const auto first = decompose(p, {.parts = 8, .plans = 3}), second = decompose(p, {.parts = 8, .plans = 3});
  ASSERT_GE(first.size(), 2u);
  for (std::size_t i = 0; i + 1 < first.size(); ++i) {
    EXPECT_LE(first[i].cost.seconds, first[i + 1].cost.seconds);
    EXPECT_NE(first[i].plan, first[i + 1].plan);
  }
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].plan, second[i].plan);
  EXPECT_EQ(message_of([&] { decompose(p, {.parts = 0}); }), "parts: found 0; required between 1 and 4096");
}

TEST(DataParallelism, CutsTheBatchAndWhatFollowsFromIt) {
  Program p;
  feed_forward(p, {.batch = 64, .input = 8, .hidden = 16, .output = 4});
  const Plan plan = data_parallel(p, 4);
  for (ExprId id = 0; id < p.size(); ++id) {
    const Node& node = p.node(id);
    if (node.as<Input>() != nullptr) continue;
    EXPECT_EQ(plan[id][0], 4) << node.name;
  }
  // Every kernel holds all weights: 4 copies of 8·16 + 16·4 numbers, and x once.
  EXPECT_DOUBLE_EQ(estimate(p, plan, {.parts = 4}).resident, 4 * (4 * 192 + 64 * 8));
  EXPECT_EQ(estimate(p, plan, {.parts = 4}).moved, 0);
}

TEST(ModelParallelism, CutsColumnsThenRows) {
  Program p;
  feed_forward(p, {.batch = 64, .input = 8, .hidden = 16, .output = 4});
  const Plan plan = model_parallel(p, 4);
  for (ExprId id = 0; id < p.size(); ++id) {
    if (p.node(id).name == "matmul1.partial") {
      EXPECT_EQ(plan[id], (Box{1, 4, 1}));
    } else if (p.node(id).name == "matmul2.partial") {
      EXPECT_EQ(plan[id], (Box{1, 1, 4}));
    }
  }
}

}  // namespace
}  // namespace doppler::program
