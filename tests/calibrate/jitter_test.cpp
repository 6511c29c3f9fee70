#include "doppler/calibrate/jitter.h"

#include <cmath>

#include <gtest/gtest.h>

#include "doppler/base/rng.h"

namespace doppler {
namespace {

constexpr OpId kOps = 10;
constexpr int kRuns = 200;
constexpr double kExact = 1e-12;
constexpr double kSampling = 0.01;  // of a quantile of 1000 draws of sigma 0.1, with room to spare

// Ten ops of one kind, or five each of two: adds take a thousandth of what matmuls take.
Graph equal_ops(bool two_kinds = false) {
  GraphBuilder builder("test");
  for (OpId op = 0; op < kOps; ++op) {
    OpSpec spec;
    spec.kind = two_kinds && op >= kOps / 2 ? "add" : "matmul";
    spec.flops = 1e6;
    builder.add_op(spec);
  }
  return std::move(builder).build();
}

// Ops take turns on two devices; `factor` says how long one takes, by run, op and device.
template <typename Factor>
JitterEstimate estimate_of(Factor factor, const Graph& graph = equal_ops()) {
  JitterEstimate jitter;
  for (int run = 0; run < kRuns; ++run) {
    Timeline timeline;
    for (OpId op = 0; op < kOps; ++op)
      timeline.executions.push_back({op, op % 2, 0, 0, 1, 1 + factor(run, op, op % 2)});
    jitter.add(graph, timeline);
  }
  return jitter;
}
template <typename Factor>
double jitter_of(Factor factor) {
  return estimate_of(factor).fitted().sigma;
}

TEST(AJitterEstimate, IsTheSigmaOfTimesOverWhatIsUsual) {
  Rng rng(1);
  EXPECT_NEAR(jitter_of([&](int, OpId, DeviceId) { return std::exp(0.1 * rng.normal()); }), 0.1, kSampling);
}

TEST(AJitterEstimate, DoesNotSeeAFewLongInterruptions) {
  Rng rng(1);
  EXPECT_NEAR(jitter_of([&](int run, OpId op, DeviceId) {
                return std::exp(0.1 * rng.normal()) + (run % 20 == 0 && op == 0 ? 100 : 0);
              }),
              0.1, kSampling);
}

TEST(AJitterEstimate, DoesNotSeeThatWholeRunsWereSlow) {
  EXPECT_NEAR(jitter_of([](int run, OpId, DeviceId) { return run % 3 == 0 ? 1.5 : 1.0; }), 0, kExact);
}

TEST(AJitterEstimate, DoesNotSeeThatADeviceIsSlower) {
  EXPECT_NEAR(jitter_of([](int, OpId, DeviceId device) { return device == 0 ? 1.0 : 3.0; }), 0, kExact);
}

TEST(AJitterEstimate, OfNoRunsIsNone) {
  EXPECT_EQ(JitterEstimate().fitted(), Jitter());
  EXPECT_EQ(JitterEstimate().fit({}).samples, 0u);
}

TEST(AJitterEstimate, GivesKindsThatDifferTheirOwnSigma) {
  // By time an add counts for nothing beside a matmul, so that the sigma of all is that of matmuls.
  Rng rng(1);
  const Jitter found = estimate_of(
                           [&](int, OpId op, DeviceId) {
                             return op < kOps / 2 ? std::exp(0.05 * rng.normal()) : 1e-3 * std::exp(0.4 * rng.normal());
                           },
                           equal_ops(true))
                           .fitted();
  EXPECT_NEAR(found.sigma, 0.05, kSampling);
  ASSERT_EQ(found.kinds.size(), 1u);
  EXPECT_EQ(found.kinds[0].kind, "add");
  EXPECT_NEAR(found.kinds[0].sigma, 0.4, 5 * kSampling);
  EXPECT_EQ(found.tail.probability, 0);  // Two thousand normal numbers have none beyond eight sigmas.
}

TEST(AJitterEstimate, FindsTheTailByTheTimeThatIsLostThere) {
  // One op in fifty takes four times as long.
  Rng rng(1);
  const Jitter found = estimate_of([&](int run, OpId op, DeviceId) {
                         return std::exp(0.05 * rng.normal()) * (run % 5 == 0 && op == 0 ? 4 : 1);
                       }).fitted();
  EXPECT_NEAR(found.sigma, 0.05, kSampling);
  // The usual times of the two devices, by which ops count, are medians with an error of some thousandths.
  EXPECT_NEAR(found.tail.probability, 0.02, 0.01 * 0.02);
  EXPECT_NEAR(found.tail.factor, 4, 5 * 4 * 0.05 / std::sqrt(40));  // the mean of 40 ops
}

TEST(AJitterEstimate, GivesTransfersTheSigmaOfOpsHoweverMuchTheyDiffer) {
  const Graph graph = [] {
    GraphBuilder builder("test");
    builder.add_op({});
    builder.add_op({});
    builder.add_consumer(builder.add_tensor(0, 8), 1);
    return std::move(builder).build();
  }();
  Rng rng(1);
  JitterEstimate estimate;
  for (int run = 0; run < 5 * kRuns; ++run) {
    Timeline timeline;
    timeline.executions = {{0, 0, 0, 0, 1, 2}, {1, 1, 0, 0, 3, 4}};
    timeline.transfers = {{0, 0, 1, 0, 2, 2, 2 + 0.5 * std::exp(0.3 * rng.normal())}};
    estimate.add(graph, timeline);
  }
  EXPECT_EQ(estimate.fitted().sigma, 0);
  EXPECT_EQ(estimate.fitted().transfers, 0);
}

TEST(AJitterFit, IsCloseIfTheModelIsTrue) {
  Rng rng(1);
  const JitterEstimate estimate = estimate_of([&](int, OpId, DeviceId) { return std::exp(0.1 * rng.normal()); });
  const CalibrationResult::Fit fit = estimate.fit(estimate.fitted());
  EXPECT_EQ(fit.samples, static_cast<std::size_t>(kRuns * kOps));
  // One in a thousand samples of that size is farther from its distribution than 1.95 / sqrt(2000) = 0.044. Besides,
  // what a run has in common is one of its ten ops, whose residual therefore is 0: a twentieth too much on either side.
  EXPECT_LT(fit.distance, 0.044 + 0.05);
  ASSERT_EQ(fit.quantiles.size(), 4u);
  EXPECT_EQ(fit.quantiles[2].share, 0.95);
  EXPECT_NEAR(fit.quantiles[2].measured, std::exp(1.645 * 0.1), 2 * kSampling);
  EXPECT_NEAR(fit.quantiles[2].modelled, std::exp(1.645 * 0.1), 2 * kSampling);
  // A device has five ops: 0.1 / sqrt(5). What a run has in common was found from its ten ops, and takes some of it.
  EXPECT_NEAR(fit.work_modelled, 0.1 / std::sqrt(5.0), 0.1 * 0.1 / std::sqrt(5.0));
  EXPECT_LT(fit.work_measured, fit.work_modelled);
}

TEST(AJitterFit, IsFarIfTheModelIsWrong) {
  // Half of the ops take half as long again: no lognormal body says so. At the lower value the model has a share of
  // 1/2 at most where half of the samples are, or it is half a distribution off at the upper one.
  const JitterEstimate estimate =
      estimate_of([](int run, OpId op, DeviceId) { return (run + static_cast<int>(op)) % 4 < 2 ? 1.0 : 1.5; });
  EXPECT_GT(estimate.fit(estimate.fitted()).distance, 0.2);
  // And none at all is as wrong as can be.
  EXPECT_GT(estimate.fit({}).distance, 0.4);
}

TEST(AJitterFit, ShowsThatADeviceWasSlowInARunAsMoreWorkThanIndependentOpsWould) {
  Rng rng(1);
  std::vector<double> slow;
  for (int run = 0; run < 2 * kRuns; ++run) slow.push_back(std::exp(0.1 * rng.normal()));
  const JitterEstimate estimate =
      estimate_of([&](int run, OpId, DeviceId device) { return slow[static_cast<std::size_t>(run) * 2 + device]; });
  const CalibrationResult::Fit fit = estimate.fit(estimate.fitted());
  // All five ops of a device share one factor: their sum varies sqrt(5) times as much as that of independent ones.
  EXPECT_GT(fit.work_measured, 1.5 * fit.work_modelled);
}

}  // namespace
}  // namespace doppler
