#include "doppler/program/expr/scalar.h"

#include <cmath>

#include "tests/program/support.h"

namespace doppler::program {
namespace {

double at(const Scalar& f, double x, double y = 0) {
  const std::complex<double> arguments[] = {x, y};
  return f.evaluate(arguments, {}).real();
}

TEST(AScalar, FoldsConstantsAndDropsNeutralElements) {
  EXPECT_TRUE((Scalar(2) * 3 + 1).is_constant(7));
  EXPECT_EQ(kX + 0, kX);
  EXPECT_EQ(1 * kX, kX);
  EXPECT_TRUE((0 * kX).is_constant(0));
  EXPECT_EQ(pow(kX, 1), kX);
  EXPECT_EQ(kX * 2, 2 * kX);
  EXPECT_EQ(if_less(kX, kY, 3, 3), Scalar(3));
}

TEST(AScalar, SharesCommonSubexpressions) {
  const Scalar e = exp(kX);
  EXPECT_EQ((e * e + e).code().size(), 4u);  // x, exp, multiply, add
  EXPECT_EQ((e * e + e).flops(), 3.0);
}

TEST(AScalar, PrintsItself) {
  const std::string names[] = {"a[i]", "b[i]"};
  EXPECT_EQ((kX * kY + 1).to_string(names), "(a[i] * b[i] + 1)");
}

TEST(AScalar, SubstitutesFunctionsForItsArguments) {
  const Scalar inner[] = {kY + 1, kX};
  EXPECT_EQ((kX * kY).substitute(inner), (kY + 1) * kX);
}

TEST(AScalar, KnowsTheDTypeAndNamesAClash) {
  const DType types[] = {DType::f16, DType::f32};
  EXPECT_EQ((2 * kX).dtype(types), DType::f16);
  EXPECT_EQ((convert(DType::f32, kX) * kY).dtype(types), DType::f32);
  EXPECT_EQ(message_of([&] { (kX * kY).dtype(types); }),
            "found f16 and f32 in one operation; required one dtype, or a conversion");
}

TEST(AScalar, RefusesAVariableWithoutAValue) {
  const Scalar rate = Scalar::variable("lr");
  EXPECT_EQ(rate.evaluate({}, {{"lr", 0.5}}).real(), 0.5);
  EXPECT_EQ(message_of([&] { rate.evaluate({}, {}); }), "variable 'lr': found no value; required one at launch");
}

// Central differences with step h err by h²·f'''/6 and by rounding/h: about 1e-10 for h = 1e-5.
constexpr double kDerivativeStep = 1e-5;
constexpr double kDerivativeTolerance = 1e-8;

TEST(AScalar, HasTheDerivativeThatFiniteDifferencesShow) {
  const Scalar functions[] = {kX * kX * kY,    kX / kY,
                              exp(kX) * kY,    log(kX) + kY,
                              pow(kX, kY),     sqrt(kX),
                              sigmoid(kX),     silu(kX),
                              gelu(kX) * kY,   tanh(kX),
                              relu(kX),        maximum(kX, kY),
                              minimum(kX, kY), if_less(kX, kY, kX * kX, 3 * kX)};
  for (const Scalar& f : functions)
    for (const auto& [x, y] : {std::pair{0.7, 1.9}, std::pair{1.3, 0.4}}) {
      EXPECT_NEAR(at(f.derivative(0), x, y),
                  (at(f, x + kDerivativeStep, y) - at(f, x - kDerivativeStep, y)) / (2 * kDerivativeStep),
                  kDerivativeTolerance);
      EXPECT_NEAR(at(f.derivative(1), x, y),
                  (at(f, x, y + kDerivativeStep) - at(f, x, y - kDerivativeStep)) / (2 * kDerivativeStep),
                  kDerivativeTolerance);
    }
}

TEST(AScalar, StaysFiniteFarOut) {
  for (const Scalar& f : {sigmoid(kX), silu(kX), gelu(kX)})
    for (const double x : {-1e4, 1e4}) {
      EXPECT_TRUE(std::isfinite(at(f, x)));
      EXPECT_TRUE(std::isfinite(at(f.derivative(0), x)));
    }
}

TEST(AScalar, HasNoDerivativeThroughAConjugate) {
  EXPECT_EQ(message_of([] { conj(kX).derivative(0); }),
            "derivative: found conj(…); required a function with a complex derivative");
  EXPECT_TRUE(conj(kX).derivative(1).is_constant(0));
}

}  // namespace
}  // namespace doppler::program
