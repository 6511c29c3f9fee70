#include "doppler/program/relational/relational_plan.h"

#include "doppler/program/relational/physical.h"
#include "tests/program/random_program.h"

namespace doppler::program {
namespace {

// Sums of a few hundred terms in double precision, in another order.
constexpr double kTolerance = 1e-9;
const Scalar kX = Scalar::argument(0);
const Scalar kY = Scalar::argument(1);

// Arithmetic and links alone take time: 56 flops one second, 128 bytes one second.
Speeds slow_speeds() {
  return {.flops_per_second = 56,
          .memory_bytes_per_second = 1e18,
          .link_bytes_per_second = 128,
          .latency = 2,
          .overhead = 0};
}

// A product of two 4 × 4 matrices of 8-byte numbers, whose reduced label is cut in two: 64 products and 48 sums in two
// blocks are 56 flops for each, and partial results have 128 bytes.
Compiled two_partials() {
  Program p;
  const Expr a = p.input("a", {4, 4}, DType::f64), b = p.input("b", {4, 4}, DType::f64);
  const Expr c = p.einsum("ij,jk->ik", {a, b});
  Plan plan = uncut(p);
  plan[c.id - 1] = {1, 1, 2};
  complete(p, plan);
  return compile(p, plan);
}

TEST(ThePhysicalPlanInSeconds, StaysOnOneSiteWhereMovingTakesLonger) {
  // Spread over two sites: 1 s, and one partial result to move, 2 s + 128 bytes / 128 bytes/s. On one site: 2 s.
  const PhysicalPlan plan = optimise(two_partials().logical, 2, slow_speeds());
  EXPECT_NEAR(plan.seconds, 2, kTolerance);
  EXPECT_EQ(plan.moved, 0);
}

TEST(ThePhysicalPlanInSeconds, SpreadsOverSitesWhereThatIsFaster) {
  // 1 s of arithmetic on each site, and 128 bytes / 256 bytes/s.
  Speeds speeds = slow_speeds();
  speeds.latency = 0;
  speeds.link_bytes_per_second = 256;
  const PhysicalPlan plan = optimise(two_partials().logical, 2, speeds);
  EXPECT_NEAR(plan.seconds, 1.5, kTolerance);
  EXPECT_EQ(plan.moved, 128);
}

TEST(ThePhysicalPlanInSeconds, SendsTuplesOnlyToTheSitesThatNeedThem) {
  // Cut 2 × 2 on 4 sites, each of the two 64-byte blocks of exp(a) is needed by two sites. If it is on one of them, the
  // other gets it, 128 bytes in all; if it is on neither, both do. A broadcast would send each to three sites.
  Program p;
  const Expr a = p.input("a", {4, 4}, DType::f64), b = p.input("b", {4, 4}, DType::f64);
  const Expr e = p.map({a}, exp(kX), "e");
  const Expr c = p.einsum("ij,jk->ik", {e, b});
  Plan plan = uncut(p);
  plan[e.id] = {2, 1};
  plan[c.id - 1] = {2, 2, 1};
  complete(p, plan);
  Speeds speeds = slow_speeds();
  speeds.latency = 0;
  const Compiled compiled = compile(p, plan);
  const PhysicalPlan physical = optimise(compiled.logical, 4, speeds);
  double sent = 0;
  for (const PhysicalOp& op : physical.ops)
    if (op.kind == PhysicalOp::Kind::multicast) sent += op.moved;
  EXPECT_EQ(sent, physical.moved);
  EXPECT_GE(sent, 128);
  EXPECT_LT(sent, 3 * 128);
}

bool computes_the_same(const Program& p, const Plan& plan, std::uint64_t seed) {
  const Values inputs = random_inputs(p, seed);
  const std::vector<Dense> expected = evaluate(p, inputs);
  for (const auto& [id, value] : run_lowered(p, lower(p, plan), inputs)) {
    double scale = 1;
    for (const auto& v : expected[id].values) scale = std::max(scale, std::abs(v));
    if (!(largest_difference(value, expected[id]) <= kTolerance * scale)) return false;
  }
  return true;
}

TEST(ARelationalPlan, IsNeverDearerThanEinDecompsAndComputesWhatTheReferenceComputes) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    Program p;
    random_program(p, rng, 10);
    DecomposeOptions options{.parts = seed % 2 == 0 ? 4 : 6, .devices = seed % 3 == 0 ? 2 : 0};
    options.speeds = {.flops_per_second = 1e3,
                      .memory_bytes_per_second = 1e4,
                      .link_bytes_per_second = 1e4,
                      .latency = 1e-3,
                      .overhead = 1e-3};
    const RelationalPlan found = relational_plan(p, options);
    EXPECT_DOUBLE_EQ(found.seconds, relational_seconds(p, found.plan, options)) << seed;
    EXPECT_LE(found.seconds, relational_seconds(p, decompose(p, options)[0].plan, options)) << seed;
    EXPECT_TRUE(computes_the_same(p, found.plan, seed + 1000)) << seed;
    EXPECT_EQ(found.plan, relational_plan(p, options).plan) << seed;
  }
}

// Two elementwise results along a, then products along b: between them blocks change hands, of which each device keeps
// its own quarter.
void change_of_cut(Program& p, Index a, Index b, Index c, DType dtype) {
  const Expr x = p.input("x", {a, c}, dtype);
  const Expr squares = p.einsum("ac,ac->ca", {x, x}, {.join = kX * kY, .name = "squares"});
  const Expr largest = p.einsum("ac->a", {x}, {.aggregate = Aggregate::max, .name = "largest"});
  p.mark_output(p.einsum("ac,a->ac", {x, largest}, {.join = exp(kX - kY), .name = "softer"}));
  const Expr first = p.einsum("ca,ab->cb", {squares, p.weight("w1", {a, b}, dtype)}, {.name = "first"});
  const Expr second = p.einsum("cb,ca->ba", {first, p.weight("w2", {c, a}, dtype)}, {.name = "second"});
  p.mark_output(p.einsum("ba,ac->bc", {second, p.weight("w3", {a, c}, dtype)}, {.name = "third"}));
}

TEST(ARelationalPlan, ChangesTheCutWhereEinDecompsEstimateShunsIt) {
  // From rows to columns on four sites 3/4 of a tensor moves. EinDecomp's estimate says 15/16, and chooses other cuts.
  Program p;
  change_of_cut(p, 512, 2048, 2048, DType::f32);
  const DecomposeOptions options{.parts = 4};
  const Plan other = decompose(p, options)[0].plan;
  const RelationalPlan found = relational_plan(p, options);
  EXPECT_NE(found.plan, other);
  EXPECT_LT(found.seconds, 0.85 * relational_seconds(p, other, options));
  Program small;
  change_of_cut(small, 8, 16, 12, DType::f64);
  EXPECT_TRUE(computes_the_same(small, found.plan, 1));
}

TEST(ARelationalPlan, FitsInMemory) {
  Program p;
  const Expr x = p.input("x", {64, 512}, DType::f32), w = p.weight("w", {512, 512}, DType::f32);
  p.mark_output(p.einsum("ij,jk->ik", {x, w}, {.name = "y"}));
  DecomposeOptions options{.parts = 4};
  options.speeds.memory = 512 * 512 * 4 / 2;
  const RelationalPlan found = relational_plan(p, options);
  EXPECT_LE(estimate(p, found.plan, options).resident, 4 * static_cast<double>(options.speeds.memory));
  options.speeds.memory = 1 << 10;
  EXPECT_THROW(relational_plan(p, options), InfeasibleError);
}

}  // namespace
}  // namespace doppler::program
