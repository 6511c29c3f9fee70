#include "doppler/learn/nn/tape.h"

#include <functional>

#include <gtest/gtest.h>

#include "doppler/base/rng.h"
#include "doppler/learn/nn/dense.h"

namespace doppler {
namespace {

using Matrix = Tape<double>::Matrix;
using Build = std::function<Matrix(Tape<double>&, Matrix a, Matrix b, Matrix row)>;

constexpr std::size_t kRows = 5, kColumns = 40;  // more than one block of columns, and a rest
constexpr double kStep = 1e-6;
constexpr double kTolerance = 1e-7;  // of central differences with that step

// Indices and weights that tapes refer to.
const std::vector<std::uint32_t> kTo = {2, 0, 2, 1, 0}, kPicked = {4, 0, 0, 3}, kSources = {0, 3, 4, 1, 1, 2};
const std::vector<std::uint32_t> kTargets = {1, 1, 0, 2, 0, 2};
const std::vector<double> kWeights = {0.5, -1, 2, 0.25, 1, 3};

struct Operation {
  std::string name;
  Build build;
};

// The parameters: two matrices of kRows × kColumns and one row.
std::vector<double> draw_parameters() {
  Rng rng(7);
  std::vector<double> values((2 * kRows + 1) * kColumns);
  for (double& value : values) value = rng.uniform(-1, 1);
  return values;
}

// Σ weight · element, with fixed weights; adds its gradient if there is room for it.
double loss_of(const Build& build, const std::vector<double>& values, std::vector<double>* gradient) {
  Tape<double> tape;
  std::vector<double> nowhere(values.size());
  double* to = (gradient != nullptr ? *gradient : nowhere).data();
  constexpr std::size_t kSize = kRows * kColumns;
  const Matrix a = tape.parameter(kRows, kColumns, values.data(), to);
  const Matrix b = tape.parameter(kRows, kColumns, values.data() + kSize, to + kSize);
  const Matrix row = tape.parameter(1, kColumns, values.data() + 2 * kSize, to + 2 * kSize);
  const Matrix y = build(tape, a, b, row);
  Rng rng(11);
  double loss = 0;
  for (std::size_t i = 0; i < tape.value(y).size(); ++i) {
    const double weight = rng.uniform(-1, 1);
    loss += weight * tape.value(y)[i];
    tape.gradient(y)[i] += weight;
  }
  tape.backward();
  return loss;
}

class ATape : public testing::TestWithParam<Operation> {};

TEST_P(ATape, HasTheGradientOfCentralDifferences) {
  std::vector<double> values = draw_parameters();
  std::vector<double> gradient(values.size());
  loss_of(GetParam().build, values, &gradient);
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double before = values[i];
    values[i] = before + kStep;
    const double above = loss_of(GetParam().build, values, nullptr);
    values[i] = before - kStep;
    const double below = loss_of(GetParam().build, values, nullptr);
    values[i] = before;
    ASSERT_NEAR(gradient[i], (above - below) / (2 * kStep), kTolerance) << i;
    largest = std::max(largest, std::abs(gradient[i]));
  }
  EXPECT_GT(largest, 0.01);
}

using T = Tape<double>;
std::vector<Operation> operations() {
  return {
      {"product", [](T& on, Matrix a, Matrix b, Matrix) { return on.product(on.reshaped(a, kColumns, kRows), b); }},
      {"product_transposed", [](T& on, Matrix a, Matrix b, Matrix) { return on.product_transposed(a, b); }},
      {"affine", [](T& on, Matrix a, Matrix b, Matrix row) { return on.affine(on.product_transposed(a, b), a, row); }},
      {"sum", [](T& on, Matrix a, Matrix b, Matrix row) { return on.sum(on.sum(a, row), on.scaled(b, 2.5)); }},
      {"elementwise", [](T& on, Matrix a, Matrix b, Matrix) { return on.elementwise(a, b); }},
      {"scaled_rows", [](T& on, Matrix a, Matrix b, Matrix row) { return on.scaled_rows(a, on.row_dots(b, row)); }},
      {"row_dots", [](T& on, Matrix a, Matrix b, Matrix) { return on.row_dots(a, b); }},
      {"relu", [](T& on, Matrix a, Matrix, Matrix) { return on.relu(a); }},
      {"tanh", [](T& on, Matrix a, Matrix, Matrix) { return on.tanh(a); }},
      {"sigmoid", [](T& on, Matrix a, Matrix, Matrix) { return on.sigmoid(a); }},
      {"softmax", [](T& on, Matrix a, Matrix, Matrix) { return on.softmax(on.scaled(a, 3)); }},
      {"layer_norm",
       [](T& on, Matrix a, Matrix b, Matrix row) { return on.layer_norm(a, row, on.row_range(b, 2, 1)); }},
      {"rows", [](T& on, Matrix a, Matrix, Matrix) { return on.rows(a, kPicked); }},
      {"row_sums", [](T& on, Matrix a, Matrix, Matrix) { return on.row_sums(a, kTo, 4); }},
      {"row_maxima", [](T& on, Matrix a, Matrix, Matrix) { return on.row_maxima(a, kTo, 4); }},
      {"messages", [](T& on, Matrix a, Matrix, Matrix) { return on.messages(a, kSources, kTargets, 3, kWeights); }},
      {"beside", [](T& on, Matrix a, Matrix b, Matrix) { return on.beside(a, b); }},
      {"above", [](T& on, Matrix a, Matrix b, Matrix) { return on.above(a, b); }},
      {"columns", [](T& on, Matrix a, Matrix, Matrix) { return on.columns(a, 3, 30); }},
      {"row_range", [](T& on, Matrix a, Matrix, Matrix) { return on.row_range(a, 1, 3); }}};
}

INSTANTIATE_TEST_SUITE_P(Operations, ATape, testing::ValuesIn(operations()),
                         [](const testing::TestParamInfo<Operation>& which) { return which.param.name; });

TEST(ATapeOfPasses, StopsAtWhatIsDetached) {
  const std::vector<double> x(4, 0.5);
  std::vector<double> gradient(4);
  Tape<double> tape;
  const Matrix a = tape.parameter(2, 2, x.data(), gradient.data());
  const Matrix y = tape.sum(tape.scaled(a, 3), tape.detached(tape.scaled(a, 5)));
  EXPECT_EQ(tape.value(y)[0], 4);
  tape.gradient(y)[0] = 1;
  tape.backward();
  EXPECT_EQ(gradient, (std::vector<double>{3, 0, 0, 0}));
}

TEST(ATapeOfPasses, UsesItsMemoryAgain) {
  Tape<double> tape;
  const std::vector<double> x(1000, 0.5);
  std::vector<const double*> places;
  for (int pass = 0; pass < 3; ++pass) {
    tape.clear();
    places.push_back(tape.value(tape.tanh(tape.constant(10, 100, x.data()))).data());
  }
  EXPECT_EQ(places[0], places[1]);
  EXPECT_EQ(places[0], places[2]);
}

TEST(TheLoopsForWideRegisters, RoundLikeTheOthers) {
  Rng rng(1);
  const auto numbers = [&](std::size_t count) {
    std::vector<float> result(count);
    for (float& number : result) number = static_cast<float>(rng.uniform(-1, 1));
    return result;
  };
  for (const std::size_t columns : {32, 64, 70})
    for (const std::size_t rows : {1, 5, 130}) {
      const std::size_t inner = 20;
      const std::vector<float> x = numbers(rows * inner), w = numbers(inner * columns), g = numbers(rows * columns);
      std::vector<float> y = numbers(rows * columns), expected = y, outer = numbers(inner * columns), slow = outer;
      dense::multiply_add(x.data(), w.data(), y.data(), rows, inner, columns);
      dense::outer_add(x.data(), g.data(), outer.data(), rows, inner, columns);
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t i = 0; i < inner; ++i)
          for (std::size_t k = 0; k < columns; ++k) {
            expected[row * columns + k] += x[row * inner + i] * w[i * columns + k];
            slow[i * columns + k] += x[row * inner + i] * g[row * columns + k];
          }
      EXPECT_EQ(y, expected) << rows << " × " << columns;
      EXPECT_EQ(outer, slow) << rows << " × " << columns;
    }
}

}  // namespace
}  // namespace doppler
