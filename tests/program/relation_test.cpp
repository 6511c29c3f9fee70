#include "doppler/program/relational/physical.h"
#include "tests/program/random_program.h"

namespace doppler::program {
namespace {

constexpr double kRelationTolerance = 1e-9;

void expect_equal(const Relation& a, const Relation& b, const std::string& what) {
  ASSERT_EQ(a.columns, b.columns) << what;
  ASSERT_EQ(a.tuples.size(), b.tuples.size()) << what;
  for (const auto& [key, array] : a.tuples) {
    const auto found = b.tuples.find(key);
    ASSERT_NE(found, b.tuples.end()) << what;
    EXPECT_LE(largest_difference(array, found->second), kRelationTolerance) << what;
  }
}

// Einsums only, over labels of even sizes, so that all blocks are equal and costs exact.
void random_einsums(Program& p, Rng& rng, int steps) {
  std::vector<Expr> pool = {p.input("x", {8, 4}, DType::f64), p.input("y", {8, 4}, DType::f64)};
  const auto pick = [&] { return pool[rng.below(static_cast<std::uint32_t>(pool.size()))]; };
  for (int step = 0; step < steps; ++step) {
    const Expr u = pick(), v = pick();
    switch (rng.below(6)) {
      case 0:
        pool.push_back(p.einsum("ij,kj,kl->il", {u, v, pick()}, {.join = tanh(kX * kY)}));
        break;
      case 1:
        pool.push_back(u + v);
        break;
      case 2:
        pool.push_back(p.einsum("ij,kj->ij", {u, v}, {.join = kX - kY, .aggregate = Aggregate::max}));
        break;
      case 3:
        pool.push_back(p.einsum("i,ij->ij", {p.einsum("ij->i", {u}), v}));
        break;
      case 4:
        pool.push_back(p.einsum("ji,jk->ik", {p.einsum("ij->ji", {u}), p.einsum("ij->ji", {v})}));
        break;
      case 5: {
        const Expr column = p.einsum("ij->j", {u}, {.aggregate = Aggregate::min});
        pool.push_back(p.einsum("j->ij", {column}, {.sizes = {{"i", 8}}}));
        break;
      }
    }
    if (pool.back().shape() != Shape{8, 4}) pool.pop_back();
  }
  p.mark_output(pool.back());
}

Plan even_plan(const Program& p, Rng& rng) {
  Plan plan = uncut(p);
  for (ExprId id = 0; id < p.size(); ++id)
    for (Index& pieces : plan[id]) pieces = Index{1} << rng.below(3);
  complete(p, plan);
  return plan;
}

std::map<std::string, Relation> stored(const Program& p, const Compiled& compiled, const std::vector<Dense>& values) {
  std::map<std::string, Relation> result;
  for (TraId id = 0; id < compiled.logical.size(); ++id) {
    const LogicalOp& op = compiled.logical.op(id);
    if (op.kind != LogicalOp::Kind::source) continue;
    const Compiled::Source& source = compiled.sources.at(op.name);
    std::vector<std::string> names(source.box.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (source.box[i] > 1) names[i] = op.columns[next++].name;
    result[op.name] = cut_relation(values[source.expr], source.box, names);
  }
  EXPECT_GT(p.size(), 0u);
  return result;
}

TEST(TensorRelationalAlgebra, ComputesEveryEinsumBlockByBlock) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Rng rng(seed);
    Program p;
    random_program(p, rng, 8);  // all kinds, uneven blocks
    const Plan plan = random_plan(p, rng);
    const std::vector<Dense> values = evaluate(p, random_inputs(p, seed));
    const Compiled compiled = compile(p, plan);
    const std::vector<Relation> relations = evaluate(compiled.logical, stored(p, compiled, values));
    const std::vector<char> needed = live(p);
    for (ExprId id = 0; id < p.size(); ++id) {
      if (!needed[id] || p.node(id).as<Formation>() == nullptr) continue;
      const Einsum& einsum = *p.node(p.node(id).inputs[0]).as<Einsum>();
      expect_equal(relations[compiled.relation_of[id]], cut_relation(values[id], plan[id], einsum.labels),
                   fmt::format("seed {} {}", seed, p.node(id).name));
    }
  }
}

TEST(ThePhysicalPlan, GivesTheSameRelationsAndMovesWhatItPredicts) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Rng rng(seed);
    Program p;
    random_einsums(p, rng, 6);
    const Compiled compiled = compile(p, even_plan(p, rng));
    const auto sources = stored(p, compiled, evaluate(p, random_inputs(p, seed)));
    const std::vector<Relation> expected = evaluate(compiled.logical, sources);
    for (const unsigned sites : {1u, 3u, 4u}) {
      const Speeds speeds{.flops_per_second = 1e6, .link_bytes_per_second = 1e5, .latency = 0, .overhead = 1e-4};
      for (const PhysicalPlan& plan : {optimise(compiled.logical, sites), optimise(compiled.logical, sites, speeds)}) {
        const Execution found = execute(compiled.logical, plan, sources, sites);
        for (TraId id = 0; id < compiled.logical.size(); ++id)
          expect_equal(found.results[id], expected[id], fmt::format("seed {} sites {} r{}", seed, sites, id));
        EXPECT_NEAR(found.moved, plan.moved, 1e-6) << "seed " << seed << " sites " << sites;
        EXPECT_TRUE(sites > 1 || found.moved == 0);
      }
    }
  }
}

// A product of two 4 × 4 matrices of 8-byte numbers.
struct Product {
  Program p;
  Compiled compiled;
  explicit Product(Box box) {
    const Expr a = p.input("a", {4, 4}, DType::f64), b = p.input("b", {4, 4}, DType::f64);
    const Expr c = p.einsum("ij,jk->ik", {a, b});
    Plan plan = uncut(p);
    plan[c.id - 1] = std::move(box);
    complete(p, plan);
    compiled = compile(p, plan);
  }
};

TEST(ThePhysicalPlan, DoesNotMistakeTheTransposedOrderOfColumnsForTheSameSites) {
  // Cut 2 × 2 on 4 sites, block (0, 1) of x is on site 1 by (i, j), but as block (1, 0) of the transposed y on site 2.
  Program p;
  const Expr x = p.input("x", {4, 4}, DType::f64), y = p.input("y", {4, 4}, DType::f64);
  const Expr a = p.map({x}, exp(kX), "a"), b = p.map({y}, exp(kX), "b");
  const Expr z = p.einsum("ij,ji->ij", {a, b}, {.join = kX * kY});
  Plan plan = uncut(p);
  for (const Expr& e : {a, b, z}) plan[e.id] = {2, 2};
  complete(p, plan);
  const Compiled compiled = compile(p, plan);
  const auto sources = stored(p, compiled, evaluate(p, random_inputs(p, 1)));
  const Execution found = execute(compiled.logical, optimise(compiled.logical, 4), sources, 4);
  expect_equal(found.results.back(), evaluate(compiled.logical, sources).back(), "z");
}

double alternative(const PhysicalPlan& plan, TraId id, const std::string& text) {
  for (const Alternative& a : plan.alternatives[id])
    if (a.text == text) return a.moved;
  ADD_FAILURE() << "no alternative '" << text << "'";
  return -1;
}

TEST(ThePhysicalPlan, OfADataParallelProductBroadcastsTheOtherFactor) {
  // Cut i2 on 2 sites: a is stored by i, b is one tuple of 128 bytes that the second site needs too.
  const Product product({2, 1, 1});
  const PhysicalPlan plan = optimise(product.compiled.logical, 2);
  EXPECT_EQ(plan.moved, 128);
  EXPECT_EQ(alternative(plan, 2, "broadcast input 1, partition on (i)"), 128);
}

TEST(ThePhysicalPlan, CoPartitionsOnTheReducedLabelAndAggregatesInTwoPhases) {
  // Cut i2 k2 j4 on 2 sites. Stored by j, both factors are where they are needed. Each site then folds its
  // partial results to one for each of the 4 groups of 32 bytes, of which half lie on the wrong site: 2 · 2 ·
  // 32 bytes. Without the first phase half of all 16 tuples would move.
  const Product product({2, 2, 4});
  const PhysicalPlan plan = optimise(product.compiled.logical, 2);
  const TraId join = 2, aggregate = 3;
  EXPECT_EQ(alternative(plan, join, "co-partition on (j)"), 0);
  EXPECT_EQ(alternative(plan, join, "broadcast input 1, partition on (i)"), 128);
  EXPECT_EQ(alternative(plan, aggregate, "aggregate locally, shuffle, aggregate on (i)"), 128);
  EXPECT_EQ(plan.moved, 128);
}

// Random relations under each rule, before and after.
class ARewrite : public testing::Test {
 protected:
  void SetUp() override {
    Rng rng(1);
    for (const auto& [name, columns] :
         {std::pair{"r", std::vector<std::string>{"a", "b"}}, std::pair{"s", std::vector<std::string>{"b", "c"}}})
      sources[name] = cut_relation(random_dense({7, 9}, rng), {3, 4}, columns);
    r = plan.source("r", {{"a", 0, 3}, {"b", 0, 4}}, 8);
    s = plan.source("s", {{"b", 0, 4}, {"c", 0, 4}}, 8);
    sources["s"] = cut_relation(random_dense({9, 7}, rng), {4, 4}, {"b", "c"});
  }
  // Rewrites the plan at `root`, compares the results and returns the new plan's kinds from the root's chain.
  std::vector<LogicalOp::Kind> rewritten(TraId root) {
    const Relation expected = evaluate(plan, sources)[root];
    std::vector<TraId> roots = {root};
    const LogicalPlan better = rewrite(plan, roots);
    root = roots[0];
    std::map<std::string, Relation> present = sources;
    expect_equal(evaluate(better, present)[root], expected, "rewrite");
    std::vector<LogicalOp::Kind> kinds;
    for (TraId id = root;;) {
      kinds.push_back(better.op(id).kind);
      if (better.op(id).inputs.empty()) return kinds;
      id = better.op(id).inputs[0];
    }
  }
  Einsum product() const {
    Einsum kernel;
    kernel.labels = {"i", "j", "k"};
    kernel.sizes = {1, 1, 1};
    kernel.operands = {{0, 2}, {2, 1}};
    kernel.join = kX * kY;
    kernel.aggregate = Aggregate::sum;
    return kernel;
  }
  using Kinds = std::vector<LogicalOp::Kind>;
  using K = LogicalOp::Kind;
  LogicalPlan plan;
  TraId r = 0, s = 0;
  std::map<std::string, Relation> sources;
};

TEST_F(ARewrite, FusesTransforms) {
  EXPECT_EQ(rewritten(plan.transform(plan.transform(r, exp(kX)), 2 * kX + 1)), (Kinds{K::transform, K::source}));
}
TEST_F(ARewrite, FusesFiltersOnOneColumn) {
  EXPECT_EQ(rewritten(plan.filter(plan.filter(r, 1, 1, 4), 1, 0, 3)), (Kinds{K::filter, K::source}));
}
TEST_F(ARewrite, FusesReKeys) {
  const TraId once = plan.rekey(r, {"u", "v"}, {1, 0}, {5, 7});
  EXPECT_EQ(rewritten(plan.rekey(once, {"w", "x"}, {1, 0}, {1, 2})), (Kinds{K::rekey, K::source}));
}
TEST_F(ARewrite, MovesAFilterBelowAReKeyAndATransform) {
  const TraId top = plan.filter(plan.rekey(plan.transform(r, kX * kX), {"u", "v"}, {1, 0}, {5, 0}), 0, 6, 8);
  EXPECT_EQ(rewritten(top), (Kinds{K::rekey, K::transform, K::filter, K::source}));
}
TEST_F(ARewrite, MovesAFilterBelowAJoinAndAnAggregation) {
  const TraId join = plan.join({r, s}, product(), 2, 8);
  const TraId top = plan.filter(plan.aggregate(join, {"a", "c"}, Aggregate::sum), 0, 1, 2);
  EXPECT_EQ(rewritten(top), (Kinds{K::aggregate, K::join, K::filter, K::source}));
}
TEST_F(ARewrite, MovesAFilterOnAJoinColumnIntoBothInputs) {
  EXPECT_EQ(rewritten(plan.filter(plan.join({r, s}, product(), 2, 8), 1, 1, 3)),
            (Kinds{K::join, K::filter, K::source}));
}
TEST_F(ARewrite, TakesALinearTransformOutOfASum) {
  // Only one column differs in shape, so sum over the other keeps blocks alike.
  sources["even"] = cut_relation(random_dense({6, 8}, *std::make_unique<Rng>(3)), {3, 4}, {"a", "b"});
  const TraId even = plan.source("even", {{"a", 0, 3}, {"b", 0, 4}}, 8);
  EXPECT_EQ(rewritten(plan.aggregate(plan.transform(even, 3 * kX), {"b"}, Aggregate::sum)),
            (Kinds{K::transform, K::aggregate, K::source}));
  EXPECT_EQ(rewritten(plan.aggregate(plan.transform(even, exp(kX)), {"b"}, Aggregate::sum)),
            (Kinds{K::aggregate, K::transform, K::source}));
  EXPECT_EQ(rewritten(plan.aggregate(plan.transform(even, 3 * kX), {"b"}, Aggregate::max)),
            (Kinds{K::aggregate, K::transform, K::source}));
}
TEST_F(ARewrite, UndoesTileAfterConcatAndTheReverse) {
  EXPECT_EQ(rewritten(plan.tile(plan.concat(r, 0, 0), 0, 3, "a")), (Kinds{K::rekey, K::source}));
  EXPECT_EQ(rewritten(plan.concat(plan.tile(r, 1, 2, "t"), 2, 1)), (Kinds{K::source}));
  EXPECT_EQ(rewritten(plan.tile(plan.concat(r, 0, 0), 0, 2, "a")), (Kinds{K::tile, K::concat, K::source}));
}
TEST_F(ARewrite, LeavesWhatOthersReadToo) {
  const TraId shared = plan.transform(r, exp(kX));
  const TraId a = plan.transform(shared, kX + 1);
  const TraId b = plan.join(
      {a, shared},
      [&] {
        Einsum kernel;
        kernel.labels = {"i", "j"};
        kernel.sizes = {1, 1};
        kernel.operands = {{0, 1}, {0, 1}};
        kernel.join = kX * kY;
        return kernel;
      }(),
      2, 8);
  EXPECT_EQ(rewritten(b), (Kinds{K::join, K::transform, K::transform, K::source}));
}

TEST(APhysicalRewrite, KeepsTheLastOfTwoMovementsAndDropsIdleOnes) {
  LogicalPlan logical;
  const TraId r = logical.source("r", {{"a", 0, 3}, {"b", 0, 4}}, 8);
  Rng rng(5);
  const std::map<std::string, Relation> sources = {{"r", cut_relation(random_dense({6, 8}, rng), {3, 4}, {"a", "b"})}};
  PhysicalPlan plan;
  using Kind = PhysicalOp::Kind;
  plan.ops = {{Kind::local, r, {}, {false, 1}, 0, false},
              {Kind::shuffle, r, {0}, {false, 1}, 0, false},
              {Kind::shuffle, r, {1}, {false, 2}, 999, false},
              {Kind::shuffle, r, {2}, {false, 3}, 999, false},
              {Kind::broadcast, r, {3}, {true, 0}, 999, false}};
  plan.result_of = {4};
  const Relation expected = execute(logical, plan, sources, 3).results[0];
  simplify(logical, plan, 3);
  ASSERT_EQ(plan.ops.size(), 2u);
  EXPECT_EQ(plan.ops[1].kind, Kind::broadcast);
  EXPECT_EQ(plan.moved, 12 * 8 * 2);  // 12 tuples of 8 bytes to two other sites
  const Execution after = execute(logical, plan, sources, 3);
  expect_equal(after.results[0], expected, "simplified");
  EXPECT_EQ(after.moved, plan.moved);
}

TEST(AnExplanation, ShowsBothPlansAndTheAlternatives) {
  const Product product({2, 2, 2});
  const std::string text = explain(product.compiled.logical, optimise(product.compiled.logical, 2));
  for (const char* part :
       {"logical plan", "Join (i:2, j:2, k:2) by einsum [i,j] * [j,k] of r0, r1", "Agg (i:2, k:2) by sum",
        "physical plan", "LocalJoin", "alternatives", "co-partition on (j)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

}  // namespace
}  // namespace doppler::program
