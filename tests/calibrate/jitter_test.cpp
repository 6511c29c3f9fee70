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

Graph equal_ops() {
  GraphBuilder builder("test");
  for (OpId op = 0; op < kOps; ++op) {
    OpSpec spec;
    spec.kind = "matmul";
    spec.flops = 1e6;
    builder.add_op(spec);
  }
  return std::move(builder).build();
}

// Ops take turns on two devices; `factor` says how long one takes, by run, op and device.
template <typename Factor>
double jitter_of(Factor factor) {
  const Graph graph = equal_ops();
  JitterEstimate jitter;
  for (int run = 0; run < kRuns; ++run) {
    Timeline timeline;
    for (OpId op = 0; op < kOps; ++op)
      timeline.executions.push_back({op, op % 2, 0, 0, 1, 1 + factor(run, op, op % 2)});
    jitter.add(graph, timeline);
  }
  return jitter.sigma();
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

TEST(AJitterEstimate, OfNoRunsIsNone) { EXPECT_EQ(JitterEstimate().sigma(), 0); }

}  // namespace
}  // namespace doppler
