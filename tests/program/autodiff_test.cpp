#include "doppler/program/expr/autodiff.h"

#include "doppler/program/cut/decompose.h"
#include "tests/program/random_program.h"
#include "tests/program/tiny_llama.h"

namespace doppler::program {
namespace {

// Central differences with step h err by O(h²) and by rounding/h: about 1e-9 for values near 1.
constexpr double kGradientStep = 1e-5;
constexpr double kGradientTolerance = 2e-7;

// Compares the gradients of `loss` with finite differences in every element of every real and complex input.
void expect_gradients(Expr loss, Values inputs) {
  Program& p = *loss.program;
  std::vector<Expr> wanted;
  for (const auto& [id, value] : inputs) wanted.push_back(p.expr(id));
  const std::vector<Expr> found = gradients(loss, wanted);
  const std::vector<Dense> values = evaluate(p, inputs);
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const Node& node = p.node(wanted[k].id);
    ASSERT_EQ(found[k].shape(), node.shape) << node.name;
    ASSERT_EQ(found[k].dtype(), node.dtype) << node.name;
    for (std::size_t i = 0; i < inputs[wanted[k].id].values.size(); ++i) {
      const auto slope = [&](std::complex<double> direction) {
        std::complex<double>& element = inputs[wanted[k].id].values[i];
        const std::complex<double> before = element;
        element = before + kGradientStep * direction;
        const double above = evaluate(p, inputs)[loss.id].values[0].real();
        element = before - kGradientStep * direction;
        const double below = evaluate(p, inputs)[loss.id].values[0].real();
        element = before;
        return (above - below) / (2 * kGradientStep);
      };
      const std::complex<double> gradient = values[found[k].id].values[i];
      EXPECT_NEAR(gradient.real(), slope(1), kGradientTolerance) << node.name << " element " << i;
      const double imaginary = is_complex(node.dtype) ? slope({0, 1}) : 0;
      EXPECT_NEAR(gradient.imag(), imaginary, kGradientTolerance) << node.name << " element " << i;
    }
  }
}

// A loss that weighs every element of y differently, so that no error cancels.
Expr weighed(Expr y) {
  Program& p = *y.program;
  Program::LabelLists labels(2);
  for (std::size_t i = 0; i < y.rank(); ++i) labels[0].push_back(fmt::format("i{}", i));
  labels[1] = labels[0];
  if (y.rank() == 0) return p.map({y}, kX * kX);
  return p.einsum(labels, {}, {y, p.input("loss_weights", y.shape(), y.dtype())}, {.join = kX * kY + kX * kX * kX});
}

class AGradient : public testing::Test {
 protected:
  void check(Expr result) { check_loss(weighed(result)); }
  void check_loss(Expr loss) { expect_gradients(loss, random_inputs(p, 3)); }
  Program p;
  Expr x = p.input("x", {3, 4}, DType::f64), y = p.input("y", {4, 2}, DType::f64), z = p.input("z", {3, 4}, DType::f64);
};

TEST_F(AGradient, OfAContraction) { check(p.einsum("ij,jk->ik", {x, y})); }
TEST_F(AGradient, OfAProductOfThree) { check(p.einsum("ij,jk,ij->k", {x, y, z})); }
TEST_F(AGradient, OfAContractionWithItself) { check(p.einsum("ij,kj->ik", {x, x})); }
TEST_F(AGradient, OfAnElementwiseFunction) { check(p.map({x, z}, kX / (2 + kY) + sigmoid(kX))); }
TEST_F(AGradient, OfASumOfAFunctionThatIsNoProduct) {
  check(p.einsum("ij,jk->ik", {x, y}, {.join = exp(kX) * kY + kX}));
}
TEST_F(AGradient, OfAMaximum) { check(p.einsum("ij->i", {x}, {.aggregate = Aggregate::max})); }
TEST_F(AGradient, OfAMinimumOfAJoin) {
  check(p.einsum("ij,jk->ik", {x, y}, {.join = kX * kX - kY, .aggregate = Aggregate::min}));
}
TEST_F(AGradient, OfAProductAggregation) {
  check(p.einsum("ij->j", {x}, {.join = 2 + kX, .aggregate = Aggregate::product}));
}
TEST_F(AGradient, OfABroadcast) { check(p.einsum("ij->ijk", {x}, {.join = kX * kX, .sizes = {{"k", 2}}})); }
TEST_F(AGradient, OfAPermutation) { check(p.einsum("ij->ji", {x})); }
TEST_F(AGradient, OfSelectAndConcat) { check(p.select(p.concat({x, z, x}, 1), {{1, 2}, {3, 11}})); }
TEST_F(AGradient, OfSqueeze) { check(p.reshape_ones(x, {3, 1, 4})); }
TEST_F(AGradient, OfComplexProducts) {
  const Expr t = p.input("t", {3, 2}, DType::c128);
  check(p.to_real(p.map({p.to_complex(x), t}, kX * kY * kY)));
}
TEST_F(AGradient, OfAMask) { check(p.map({x, p.fill({3, 4}, DType::f64, {.value = 2, .above = -1})}, kX * kY)); }
TEST_F(AGradient, OfSoftmax) { check(softmax(x)); }
TEST_F(AGradient, OfNorms) {
  const Expr w = p.weight("w", {4}, DType::f64), b = p.weight("b", {4}, DType::f64);
  check(rms_norm(layer_norm(x, w, b), w));
}
TEST_F(AGradient, OfCrossEntropy) { check_loss(cross_entropy(x, z)); }
TEST_F(AGradient, OfActivations) { check(gelu(silu(x))); }

TEST_F(AGradient, SharesTiesEqually) {
  const Expr loss = p.einsum("ij->", {x}, {.aggregate = Aggregate::max});
  const Expr g = gradients(loss, {x})[0];
  Values inputs = random_inputs(p, 1);
  inputs[x.id].values[2] = inputs[x.id].values[7] = 5;  // both maximal
  const Dense found = evaluate(p, inputs)[g.id];
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(found.values[i].real(), i == 2 || i == 7 ? 0.5 : 0.0);
}

TEST_F(AGradient, StaysSymbolicWhereItIsConstant) {
  const Expr loss = p.einsum("ij->", {x});
  const ExprId before = p.size();
  const Expr g = gradients(loss, {x})[0];
  EXPECT_EQ(p.size(), before + 1);  // one fill, nothing else
  EXPECT_EQ(p.node(g.id).as<Fill>()->value, 1);
}

TEST_F(AGradient, IsRefusedForALossThatIsNoScalar) {
  EXPECT_EQ(message_of([&] { gradients(x, {x}); }), "loss 'x': found f64 [3, 4]; required a real scalar");
}

TEST(AutoDiff, IsRightForATwoLayerPerceptron) {
  Program p;
  const Expr x = p.input("x", {4, 3}, DType::f64), t = p.input("t", {4, 2}, DType::f64);
  const Expr y = matmul(gelu(matmul(x, p.weight("w1", {3, 5}, DType::f64))), p.weight("w2", {5, 2}, DType::f64));
  expect_gradients(mean_square_error(y, t), random_inputs(p, 5));
}

TEST(AutoDiff, IsRightForAWholeLlama) {
  Program p;
  LlamaOptions options = tiny_llama();
  options.train = true;
  llama(p, options);
  const Expr loss = p.expr(p.outputs()[0]);
  expect_gradients(loss, random_inputs(p, 7));
}

TEST(AutoDiff, IsRightForRandomPrograms) {
  for (std::uint64_t seed = 100; seed < 112; ++seed) {
    Rng rng(seed);
    Program p;
    random_program(p, rng, 4);
    const Expr out = p.expr(p.outputs()[0]);
    const Expr loss = p.einsum("ij->", {out}, {.join = tanh(kX)});
    expect_gradients(loss, random_inputs(p, seed, 0.2, 0.9));
  }
}

void small_ffnn(Program& p) { feed_forward(p, {.batch = 8, .input = 4, .hidden = 6, .output = 3, .train = true}); }

TEST(ATrainingStep, DescendsAlongTheGradient) {
  Program p;
  small_ffnn(p);
  const Expr loss = p.expr(p.outputs()[0]);
  add_training_step(loss, Optimizer::sgd);
  ASSERT_EQ(p.updates().size(), 2u);
  Values inputs = random_inputs(p, 1);
  const Variables variables = {{"learning_rate", 0.1}};
  const std::vector<Dense> first = evaluate(p, inputs, variables);
  for (const Program::Update& update : p.updates()) inputs[update.old] = first[update.next];
  EXPECT_LT(evaluate(p, inputs, variables)[loss.id].values[0].real(), first[loss.id].values[0].real());
}

TEST(ATrainingStep, OfAdamMovesEveryWeightByTheRateAtFirst) {
  Program p;
  small_ffnn(p);
  add_training_step(p.expr(p.outputs()[0]), Optimizer::adam);
  ASSERT_EQ(p.updates().size(), 6u);  // m, v and w of two weights
  Values inputs = random_inputs(p, 1);
  for (const Program::Update& update : p.updates())
    if (!p.node(update.old).as<Input>()->weight) inputs[update.old] = Dense(p.node(update.old).shape);
  // With zero moments m/(1-β1) = g and √(v/(1-β2)) = |g|, so the step is rate · sign(g).
  const std::vector<Dense> values =
      evaluate(p, inputs, {{"learning_rate", 0.1}, {"beta1_power", 0.9}, {"beta2_power", 0.999}});
  for (const Program::Update& update : p.updates()) {
    if (!p.node(update.old).as<Input>()->weight) continue;
    for (std::size_t i = 0; i < values[update.old].values.size(); ++i) {
      const double step = std::abs(values[update.next].values[i] - values[update.old].values[i]);
      EXPECT_TRUE(std::abs(step - 0.1) < 1e-4 || step == 0) << step;  // a dead relu has no gradient
    }
  }
}

TEST(ATrainingStep, RunsBlockByBlockLikeTheReference) {
  Program p;
  LlamaOptions options = tiny_llama();
  options.train = true;
  llama(p, options);
  add_training_step(p.expr(p.outputs()[0]), Optimizer::adam);
  const Variables variables = {{"learning_rate", 0.1}, {"beta1_power", 0.9}, {"beta2_power", 0.999}};
  const Values inputs = random_inputs(p, 2, 0.1, 0.9);
  const std::vector<Dense> expected = evaluate(p, inputs, variables);
  const Lowered lowered = lower(p, decompose(p, {.parts = 4})[0].plan);
  EXPECT_EQ(lowered.graph.group_count() > 0, true);
  for (const auto& [id, value] : run_lowered(p, lowered, inputs, variables))
    EXPECT_LE(largest_difference(value, expected[id]), 1e-9) << p.node(id).name;
}

TEST(ATrainingStep, RefusesAWeightThatTheLossDoesNotSee) {
  Program p;
  small_ffnn(p);
  p.weight("idle", {2});
  EXPECT_EQ(message_of([&] { add_training_step(p.expr(p.outputs()[0]), Optimizer::sgd); }),
            "train: weight 'idle' does not reach the loss 'cross_entropy.mean'; required one that does");
  EXPECT_EQ(message_of([] { parse_optimizer("lion"); }), "train: found 'lion'; required sgd or adam");
}

}  // namespace
}  // namespace doppler::program
