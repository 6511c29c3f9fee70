#include "doppler/calibrate/interference.h"

#include <gtest/gtest.h>

namespace doppler {
namespace {

constexpr double kInterferenceRounding = 1e-12;

// Three ops of one size.
Graph three_products() {
  GraphBuilder builder("test");
  for (int i = 0; i < 3; ++i) {
    OpSpec spec;
    spec.kind = "matmul";
    spec.dtype = "f32";
    spec.flops = 1e6;
    builder.add_op(spec);
  }
  return std::move(builder).build();
}

// Two side by side, 1.2 s each, then one alone, 1 s.
Timeline two_and_one() {
  Timeline timeline;
  timeline.executions = {{0, 0, 0, 0, 0, 1.2}, {1, 1, 0, 0, 0, 1.2}, {2, 0, 0, 1.2, 1.2, 2.2}};
  timeline.busy = {2.2, 1.2};
  timeline.makespan = 2.2;
  return timeline;
}

TEST(Interference, IsTimeBesideOthersOverTimeAlone) {
  const Graph graph = three_products();
  Interference interference;
  for (int run = 0; run < 5; ++run) interference.add(graph, two_and_one());
  ASSERT_TRUE(interference.of("matmul", "f32"));
  EXPECT_NEAR(*interference.of("matmul", "f32"), 1.2, kInterferenceRounding);
  EXPECT_FALSE(interference.of("matmul", "f64"));
}

TEST(Interference, LeavesOutOpsThatWereAloneForAWhile) {
  // The second device computes half of the time of the op on the first.
  Timeline timeline = two_and_one();
  timeline.executions[1].end = 0.6;
  const Graph graph = three_products();
  Interference interference;
  for (int run = 0; run < 5; ++run) interference.add(graph, timeline);
  // Op 1 was beside op 0 all the time; op 0 is neither.
  ASSERT_TRUE(interference.of("matmul", "f32"));
  EXPECT_NEAR(*interference.of("matmul", "f32"), 0.6, kInterferenceRounding);
}

TEST(Interference, IsNotGuessedFromAFewRuns) {
  const Graph graph = three_products();
  Interference interference;
  for (int run = 0; run < 2; ++run) interference.add(graph, two_and_one());  // two ops alone
  EXPECT_FALSE(interference.of("matmul", "f32"));
}

}  // namespace
}  // namespace doppler
