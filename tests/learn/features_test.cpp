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

Problem under(Links links, const Graph& graph, unsigned devices) {
  Rules rules;
  rules.links = links;
  return Problem(graph, machine_of(std::vector<std::string>(devices, "a")), rules);
}

TEST(AnEpisodeState, LetsATransferWaitForThoseBookedOnItsChannel) {
  // Ops 0 and 1 (1 s each) run on device 0 from 0 to 2. Op 2 reads op 0 and op 3 reads op 1, by transfers of 4 s. Op 2
  // goes to device 1: its input moves from 1 to 5. Op 3 there has to wait for the channel: its input is ready at 2 and
  // moves from 5 to 9. On device 2, to which nothing moves, it arrives at 2 + 4 = 6, and op 3 stays free to start at 2
  // on device 0.
  const Graph graph = graph_of({1, 1, 1, 1}, {{0, 2, 4}, {1, 3, 4}});
  const auto starts = [&](Links links) {
    const Problem world = under(links, graph, 3);
    const PolicyInput input(world);
    EpisodeState state(DeviceFeatureSet::improved);
    state.bind(input);
    for (const auto& [op, device] : std::vector<std::pair<OpId, DeviceId>>{{0, 0}, {1, 0}, {2, 1}}) {
      state.observe(op);
      state.place(op, device, [](OpId) {});
    }
    state.observe(3);
    return std::vector<Seconds>{state.start(0), state.start(1), state.start(2)};
  };
  EXPECT_EQ(starts(Links::channels), (std::vector<Seconds>{2, 9, 6}));
  EXPECT_EQ(starts(Links::free), (std::vector<Seconds>{2, 6, 6}));
}

TEST(AnEpisodeState, MovesATensorOncePerDestination) {
  // Ops 1 and 2 read the one tensor of op 0, which takes 4 s. Op 0 ends at 1; op 1 goes to device 1 and runs from 5 to
  // 6. The tensor is there then, so op 2 can start at 6 on device 1.
  GraphBuilder builder("shared");
  for (int i = 0; i < 3; ++i) {
    OpSpec op;
    op.explicit_times["*"] = 1;
    builder.add_op(std::move(op));
  }
  const TensorId tensor = builder.add_tensor(0, 0, 4.0);
  builder.add_consumer(tensor, 1);
  builder.add_consumer(tensor, 2);
  const Graph graph = std::move(builder).build();
  for (const Links links : {Links::channels, Links::receiver}) {
    const Problem world = under(links, graph, 2);
    const PolicyInput input(world);
    EpisodeState state(DeviceFeatureSet::improved);
    state.bind(input);
    state.observe(0);
    state.place(0, 0, [](OpId) {});
    state.observe(1);
    EXPECT_EQ(state.start(1), 5);
    state.place(1, 1, [](OpId) {});
    state.observe(2);
    EXPECT_EQ(state.start(1), 6) << to_string(links);
  }
}

TEST(AnEpisodeState, KeepsAReceiverFromComputingWhileItCopies) {
  // Op 1 (3 s) runs on device 1 from 0 to 3. Op 2 reads op 0, which ends at 1 on device 0, by a copy of 4 s: device 1
  // copies only after op 1, from 3 to 7. With free links the tensor is there at 5.
  const Graph graph = graph_of({1, 3, 1}, {{0, 2, 4}});
  const auto start = [&](Links links) {
    const Problem world = under(links, graph, 2);
    const PolicyInput input(world);
    EpisodeState state(DeviceFeatureSet::improved);
    state.bind(input);
    state.observe(0);
    state.place(0, 0, [](OpId) {});
    state.observe(1);
    state.place(1, 1, [](OpId) {});
    state.observe(2);
    return state.start(1);
  };
  EXPECT_EQ(start(Links::receiver), 7);
  EXPECT_EQ(start(Links::free), 5);
}

TEST(Features, SayWhichClustersAreOnADevice) {
  // Two chains of four ops with heavy tensors and nothing between them: on two devices the clusters are the chains.
  const PolicyInput input(
      Problem(graph_of({1, 1, 1, 1, 1, 1, 1, 1}, {{0, 1, 9}, {1, 2, 9}, {2, 3, 9}, {4, 5, 9}, {5, 6, 9}, {6, 7, 9}}),
              machine_of({"a", "a"})));
  for (OpId op = 0; op < 8; ++op) {
    EXPECT_EQ(input.cluster(op) == input.cluster(0), op < 4) << op;
    EXPECT_LT(input.cluster(op), 2U);
  }
  const auto column = [](std::string_view name) {
    return static_cast<std::size_t>(std::find(kDeviceFeatures.begin(), kDeviceFeatures.end(), name) -
                                    kDeviceFeatures.begin());
  };
  EpisodeState state(DeviceFeatureSet::improved);
  state.bind(input);
  for (const auto& [op, device] : std::vector<std::pair<OpId, DeviceId>>{{0, 0}, {4, 1}, {5, 0}}) {
    state.observe(op);
    state.place(op, device, [](OpId) {});
  }
  // Device 0 has one op of each chain, device 1 one of the second: half of the second chain's two seconds is on each.
  state.observe(6);
  EXPECT_EQ(state.features(0)[column("cluster")], 0.5F);
  EXPECT_EQ(state.features(1)[column("cluster")], 0.5F);
  EXPECT_EQ(state.features(0)[column("other_clusters")], 0.5F);
  EXPECT_EQ(state.features(1)[column("other_clusters")], 0.0F);
  state.observe(1);
  EXPECT_EQ(state.features(0)[column("cluster")], 1.0F);
  EXPECT_EQ(state.features(1)[column("other_clusters")], 1.0F);
}

}  // namespace
}  // namespace doppler::test
