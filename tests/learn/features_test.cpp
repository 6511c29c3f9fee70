#include "tests/learn/support.h"

namespace doppler::test {
namespace {

// Node features are cut at ±4, device features at ±2, whatever the costs.
void expect_bounded_features(const Problem& world) {
  const PolicyInput input(world);
  ASSERT_EQ(input.node_features().size(), input.op_count() * kNodeFeatureCount);
  for (std::size_t i = 0; i < input.node_features().size(); ++i) {
    EXPECT_TRUE(std::isfinite(input.node_features()[i])) << kNodeFeatures[i % kNodeFeatureCount];
    EXPECT_LE(std::abs(input.node_features()[i]), 4) << kNodeFeatures[i % kNodeFeatureCount];
  }
  EXPECT_TRUE(std::isfinite(input.horizon()) && input.horizon() > 0);
  for (DeviceId a = 0; a < input.device_count(); ++a)
    for (DeviceId b = 0; b < input.device_count(); ++b) {
      EXPECT_GE(input.nearness(a, b), 0);
      EXPECT_LE(input.nearness(a, b), 1);
    }
  Rng rng(1);
  for (const DeviceFeatureSet set : {DeviceFeatureSet::improved, DeviceFeatureSet::paper}) {
    EpisodeState state(set);
    state.bind(input);
    for (const OpId op : world.graph().topological_order()) {
      state.observe(op);
      ASSERT_GE(state.choices(), 1U);
      std::vector<DeviceId> choices;
      for (DeviceId device = 0; device < input.device_count(); ++device) {
        if (!state.may_go(device)) continue;
        choices.push_back(device);
        for (std::size_t i = 0; i < feature_count(set); ++i) {
          const float x = state.features(device)[i];
          const auto name = set == DeviceFeatureSet::paper ? kPaperDeviceFeatures[i] : kDeviceFeatures[i];
          EXPECT_TRUE(std::isfinite(x)) << name;
          EXPECT_LE(std::abs(x), 2) << name;
        }
      }
      ASSERT_EQ(choices.size(), state.choices());
      state.place(op, choices[rng.below(state.choices())], [](OpId) {});
    }
  }
}

TEST(Features, AreBoundedForOneOp) { expect_bounded_features(Problem(graph_of({3}, {}), machine_of({"a", "a"}))); }

TEST(Features, AreBoundedForOneOpOnOneDevice) {
  expect_bounded_features(Problem(graph_of({3}, {}), machine_of({"a"})));
}

TEST(Features, AreBoundedForOneDevice) {
  expect_bounded_features(Problem(graph_of({3, 1, 2}, {{0, 1, 4}, {1, 2, 1}}), machine_of({"a"})));
}

TEST(Features, AreBoundedForOpsThatCostNothing) {
  expect_bounded_features(Problem(graph_of({0, 0, 0}, {{0, 1, 0}, {0, 2, 0}}), machine_of({"a", "a"})));
  expect_bounded_features(Problem(graph_of({0, 0, 0}, {{0, 1, 5}, {0, 2, 7}}), machine_of({"a", "a"})));
  expect_bounded_features(Problem(graph_of({0, 3, 0}, {{0, 1, 0}, {1, 2, 0}}), machine_of({"a", "a"})));
}

TEST(Features, AreBoundedForHugeAndTinyCosts) {
  expect_bounded_features(Problem(graph_of({1e18, 1e-18, 1}, {{0, 1, 1e-18}, {1, 2, 1e18}}), machine_of({"a", "a"})));
}

TEST(Features, AreBoundedWhereSomeDevicesCannotRunSomeOps) {
  expect_bounded_features(*mixed_world());
  GraphBuilder builder("split");  // an op for each device, and one that is free on one of them
  for (const auto& [a, b] : {std::pair(1.0, Costs::kNever), {Costs::kNever, 2.0}, {0.0, 3.0}}) {
    OpSpec spec;
    spec.explicit_times = {{"a", a}, {"b", b}};
    builder.add_op(std::move(spec));
  }
  builder.add_consumer(builder.add_tensor(0, 0, 1.0), 1);
  builder.add_consumer(builder.add_tensor(1, 0, 1.0), 2);
  expect_bounded_features(Problem(std::move(builder).build(), machine_of({"a", "b", "b"})));
}

TEST(Features, AreBoundedUnderMemoryPressure) {
  GraphBuilder builder("heavy");
  for (OpId op = 0; op < 6; ++op) {
    OpSpec spec;
    spec.explicit_times["*"] = 1;
    spec.parameter_bytes = 70;
    builder.add_op(std::move(spec));
  }
  expect_bounded_features(Problem(std::move(builder).build(), machine_of({"a", "a"}, 100)));
}

TEST(Features, DoNotDependOnTheUnitOfTime) {
  const auto features = [](double unit) {
    const Problem world(graph_of({3 * unit, 1 * unit, 2 * unit}, {{0, 1, 4 * unit}, {0, 2, 1 * unit}}),
                        machine_of({"a", "a"}));
    const PolicyInput input(world);
    return std::vector<float>(input.node_features().begin(), input.node_features().end());
  };
  const auto seconds = features(1), nanoseconds = features(1e9);
  for (std::size_t i = 0; i < seconds.size(); ++i) EXPECT_NEAR(seconds[i], nanoseconds[i], 1e-6);
}

TEST(Features, OfDevicesAreWhatTheStateSays) {
  // Two devices. Op 0 (3 s) on device 0 ends at 3; op 1 (1 s) reads it over a transfer of 2 s, so it may start at 3 on
  // device 0 and at 5 on device 1.
  const Problem world(graph_of({3, 1}, {{0, 1, 2}}), machine_of({"a", "a"}));
  const PolicyInput input(world);
  EpisodeState state(DeviceFeatureSet::paper);
  state.bind(input);
  state.observe(0);
  state.place(0, 0, [](OpId next) { EXPECT_EQ(next, 1U); });
  state.observe(1);
  EXPECT_EQ(state.start(0), 3);
  EXPECT_EQ(state.start(1), 5);
  EXPECT_EQ(state.finish(1), 6);
  // The horizon is the critical path 3 + 1 = 4 s, since the work per device is 2 s. load, load of the inputs, their
  // first start, their last end, start, any input here.
  EXPECT_EQ(input.horizon(), 4);
  const std::vector<float> here = {0.75F, 0.75F, 0, 0.75F, 0.75F, 1}, there = {0, 0, 0, 0, 1.25F, 0};
  EXPECT_EQ(std::vector<float>(state.features(0), state.features(0) + 6), here);
  EXPECT_EQ(std::vector<float>(state.features(1), state.features(1) + 6), there);
}

}  // namespace
}  // namespace doppler::test
