#include "doppler/program/expr/library.h"

#include <cmath>

#include "tests/program/support.h"

namespace doppler::program {
namespace {

// Double precision, a few hundred operations.
constexpr double kLibraryTolerance = 1e-12;

Dense dense(Shape shape, std::vector<std::complex<double>> values) {
  Dense result(std::move(shape));
  result.values = std::move(values);
  return result;
}
Dense value_of(Expr e, const Values& inputs) { return evaluate(*e.program, inputs)[e.id]; }

TEST(TheEvaluator, MultipliesMatrices) {
  Program p;
  const Expr a = p.input("a", {2, 2}), b = p.input("b", {2, 2});
  const Values inputs = {{a.id, dense({2, 2}, {1, 2, 3, 4})}, {b.id, dense({2, 2}, {5, 6, 7, 8})}};
  // [1 2; 3 4]·[5 6; 7 8] = [19 22; 43 50]
  EXPECT_EQ(value_of(matmul(a, b), inputs).values, dense({2, 2}, {19, 22, 43, 50}).values);
  // The same labels with other algebras: (min, +) and (max, ·).
  const Scalar x = Scalar::argument(0), y = Scalar::argument(1);
  EXPECT_EQ(value_of(p.einsum("ij,jk->ik", {a, b}, {.join = x + y, .aggregate = Aggregate::min}), inputs).values,
            dense({2, 2}, {6, 7, 8, 9}).values);
  EXPECT_EQ(value_of(p.einsum("ij,jk->ik", {a, b}, {.aggregate = Aggregate::max}), inputs).values,
            dense({2, 2}, {14, 16, 28, 32}).values);
  EXPECT_EQ(value_of(p.einsum("ij->", {a}, {.aggregate = Aggregate::product}), inputs).values[0], 24.0);
}

TEST(TheEvaluator, SelectsConcatenatesFillsAndSqueezes) {
  Program p;
  const Expr a = p.input("a", {2, 3});
  const Values inputs = {{a.id, dense({2, 3}, {1, 2, 3, 4, 5, 6})}};
  const Expr part = p.select(a, {{0, 1}, {2, 3}});
  EXPECT_EQ(value_of(part, inputs).values, dense({2, 2}, {2, 3, 5, 6}).values);
  EXPECT_EQ(value_of(p.concat({part, a}, 1), inputs).values, dense({2, 5}, {2, 3, 1, 2, 3, 5, 6, 4, 5, 6}).values);
  EXPECT_EQ(value_of(p.fill({2, 2}, DType::f32, {.value = 1, .above = 9}), inputs).values,
            dense({2, 2}, {1, 9, 1, 1}).values);
  EXPECT_EQ(value_of(p.reshape_ones(a, {1, 2, 1, 3}), inputs).shape, (Shape{1, 2, 1, 3}));
  EXPECT_EQ(message_of([&] { evaluate(p, {}); }), "input 'a': found no value of its shape; required [2, 3]");
}

TEST(TheLibrary, HasASoftmaxWhoseRowsAreProportionalToExponentials) {
  Program p;
  const Expr x = p.input("x", {2, 3});
  const Dense y = value_of(softmax(x), {{x.id, dense({2, 3}, {0, std::log(2.0), std::log(5.0), 900, 900, 900})}});
  // exp = 1, 2, 5 of 8; the second row overflows unless the maximum is subtracted first.
  for (const auto& [i, expected] : {std::pair{0, 0.125}, {1, 0.25}, {2, 0.625}, {3, 1.0 / 3}, {5, 1.0 / 3}})
    EXPECT_NEAR(y.values[static_cast<std::size_t>(i)].real(), expected, kLibraryTolerance);
}

TEST(TheLibrary, Normalises) {
  Program p;
  const Expr x = p.input("x", {1, 2}), w = p.weight("w", {2}), b = p.weight("b", {2});
  const Values inputs = {{x.id, dense({1, 2}, {1, 7})}, {w.id, dense({2}, {1, 10})}, {b.id, dense({2}, {0, 1})}};
  // mean of squares 25, so 1/5 and 10·7/5
  EXPECT_NEAR(value_of(rms_norm(x, w, 1, 0), inputs).values[1].real(), 14, kLibraryTolerance);
  // mean 4, deviation 3: -1 and 10·1 + 1
  const Dense y = value_of(layer_norm(x, w, b, 0), inputs);
  EXPECT_NEAR(y.values[0].real(), -1, kLibraryTolerance);
  EXPECT_NEAR(y.values[1].real(), 11, kLibraryTolerance);
}

TEST(TheLibrary, TurnsPairs) {
  Program p;
  const Expr x = p.input("x", {1, 1, 1, 4}), table = p.input("t", {1, 2}, DType::c64);
  // (1, 2) times i is (-2, 1); (3, 4) times 1 stays.
  const Dense y = value_of(rotary(x, table),
                           {{x.id, dense({1, 1, 1, 4}, {1, 2, 3, 4})}, {table.id, dense({1, 2}, {{0, 1}, {1, 0}})}});
  EXPECT_EQ(y.values, dense({1, 1, 1, 4}, {-2, 1, 3, 4}).values);
}

TEST(TheLibrary, AttendsToThePastOnly) {
  Program p;
  const Shape shape = {1, 3, 2, 4};
  const Expr q = p.input("q", shape), k = p.input("k", shape), v = p.input("v", shape);
  const Expr y = attention(q, k, v, causal_mask(p, 3, DType::f32));
  Values inputs = random_inputs(p, 1);
  const Dense before = value_of(y, inputs);
  // The first position sees itself alone, so its result is its value. Results are [head, position, 4].
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(std::abs(before.values[i] - inputs[v.id].values[i]), 0, kLibraryTolerance);
    EXPECT_NEAR(std::abs(before.values[12 + i] - inputs[v.id].values[4 + i]), 0, kLibraryTolerance);
  }
  // Changing the last position changes nothing before it.
  for (std::size_t i = 16; i < 24; ++i) inputs[k.id].values[i] += 1, inputs[v.id].values[i] += 1;
  const Dense after = value_of(y, inputs);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(before.values[i], after.values[i]);
    EXPECT_EQ(before.values[12 + i], after.values[12 + i]);
  }
  EXPECT_NE(before.values[8], after.values[8]);
}

TEST(TheLibrary, MeasuresCrossEntropyAndError) {
  Program p;
  const Expr x = p.input("x", {2, 2}), t = p.input("t", {2, 2});
  const Values inputs = {{x.id, dense({2, 2}, {0, 0, std::log(3.0), 0})}, {t.id, dense({2, 2}, {1, 0, 0, 1})}};
  // rows: -log 1/2 and -log 1/4; their mean is 1.5 log 2
  EXPECT_NEAR(value_of(cross_entropy(x, t), inputs).values[0].real(), 1.5 * std::log(2.0), kLibraryTolerance);
  const double l = std::log(3.0);
  EXPECT_NEAR(value_of(mean_square_error(x, t), inputs).values[0].real(), (1 + 0 + l * l + 1) / 4, kLibraryTolerance);
}

TEST(TheLibrary, ActivatesAndStacks) {
  Program p;
  const Expr x = p.input("x", {1, 2}), w = p.weight("w", {2, 2});
  const Values inputs = {{x.id, dense({1, 2}, {-1, 2})}, {w.id, dense({2, 2}, {1, 0, 0, 1})}};
  EXPECT_EQ(value_of(mlp(x, w, w), inputs).values, dense({1, 2}, {0, 2}).values);
  EXPECT_NEAR(value_of(silu(x), inputs).values[1].real(), 2 / (1 + std::exp(-2.0)), kLibraryTolerance);
  // 0.5·2·(1 + tanh(√(2/π)(2 + 0.044715·8))) = 1.9545977
  EXPECT_NEAR(value_of(gelu(x), inputs).values[1].real(), 1.9545977, 1e-6);
}

TEST(TheLibrary, WidensHalfPrecisionInsideNormsAndNarrowsAfter) {
  Program p;
  const Expr x = p.input("x", {2, 4}, DType::f16), w = p.weight("w", {4}, DType::f16);
  const Expr y = rms_norm(x, w);
  EXPECT_EQ(y.dtype(), DType::f16);
  // cast, square, sum, formation, mean, rsqrt, row product, cast, weight
  EXPECT_EQ(p.size(), 2u + 9u);
}

}  // namespace
}  // namespace doppler::program
