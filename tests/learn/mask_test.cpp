#include "tests/learn/support.h"

namespace doppler::test {
namespace {

constexpr int kRollouts = 1000;

// Runs sampled rollouts of an untrained policy and hands each to `check`.
template <typename Check>
void sample(const Problem& problem, Check check) {
  const PolicyInput input(problem);
  Gnn<float> network({}, Rng(1));
  Embedding<float> embedding;
  network.embed(input, {}, embedding);
  Rollout<float> rollout(network.device_features(), network.head_shape(), true);
  rollout.bind(input);
  Rng rng(2);
  for (int i = 0; i < kRollouts; ++i) {
    rollout.act(embedding, network.head(), Deciding::sampled, rng);
    check(rollout);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(AMask, KeepsOpsOffDevicesThatCannotRunThem) {
  const auto world = mixed_world({{5, 1}, {0, 2}});
  std::vector<std::vector<int>> visits(world->op_count(), std::vector<int>(3, 0));
  sample(*world, [&](const Rollout<float>& rollout) {
    Placement placement;
    placement.device_of_op.assign(rollout.device_of_op().begin(), rollout.device_of_op().end());
    verify(*world, placement);  // throws
    for (std::size_t step = 0; step < rollout.order().size(); ++step) {
      const OpId op = rollout.order()[step];
      ++visits[op][placement.device_of_op[op]];
      for (DeviceId device = 0; device < 3; ++device)
        EXPECT_TRUE(world->allows(op, device) || rollout.probability(step, device) == 0);
    }
  });
  for (OpId op = 0; op < world->op_count(); ++op)
    for (DeviceId device = 0; device < 3; ++device)
      EXPECT_EQ(visits[op][device] > 0, world->allows(op, device)) << "op " << op << " device " << device;
}

TEST(AMask, KeepsGroupsTogether) {
  const auto world = mixed_world();
  std::vector<int> visits(3, 0);
  sample(*world, [&](const Rollout<float>& rollout) {
    EXPECT_EQ(rollout.device_of_op()[6], rollout.device_of_op()[8]);
    ++visits[rollout.device_of_op()[6]];
  });
  for (const int count : visits) EXPECT_GT(count, 0);
}

TEST(AMask, KeepsOpsOffFullDevices) {
  // Five ops with 40 bytes of parameters each on three devices of 100: two to a device, and no third.
  GraphBuilder builder("heavy");
  for (OpId op = 0; op < 5; ++op) {
    OpSpec spec;
    spec.explicit_times["*"] = 1;
    spec.parameter_bytes = 40;
    builder.add_op(std::move(spec));
  }
  const Problem world(std::move(builder).build(), machine_of({"a", "a", "a"}, 100));
  sample(world, [&](const Rollout<float>& rollout) {
    std::vector<int> held(3, 0);
    for (std::size_t step = 0; step < rollout.order().size(); ++step) {
      for (DeviceId device = 0; device < 3; ++device)
        EXPECT_EQ(rollout.probability(step, device) > 0, held[device] < 2);
      ++held[rollout.device_of_op()[rollout.order()[step]]];
    }
  });
}

TEST(AMask, LeavesTheLeastFullDeviceWhenAllAreFull) {
  // Each op alone is larger than any device; device 1 has the most room.
  GraphBuilder builder("too_heavy");
  for (OpId op = 0; op < 3; ++op) {
    OpSpec spec;
    spec.explicit_times["*"] = 1;
    spec.parameter_bytes = 1000;
    builder.add_op(std::move(spec));
  }
  std::vector<Device> devices(3);
  for (DeviceId i = 0; i < 3; ++i) {
    devices[i].name = "d" + std::to_string(i);
    devices[i].type = "a";
    devices[i].memory = i == 1 ? 900 : 100;
  }
  const Problem world(std::move(builder).build(), Machine("small", devices, std::vector<Link>(9)));
  sample(world, [&](const Rollout<float>& rollout) {
    EXPECT_EQ(rollout.device_of_op()[rollout.order()[0]], 1U);
    for (std::size_t step = 0; step < 3; ++step) {
      double total = 0;
      for (DeviceId device = 0; device < 3; ++device) total += static_cast<double>(rollout.probability(step, device));
      EXPECT_EQ(total, 1);
    }
  });
}

TEST(AMask, LeavesNoGradientWhereThereIsNoChoice) {
  std::vector<Pin> pins;
  for (OpId op = 0; op < 10; ++op) pins.push_back({op, op % 2});
  const auto world = mixed_world(pins, false);
  const PolicyInput input(*world);
  constexpr HeadShape kShape;
  const Embedding<double> embedding = random_embedding<double>(input.op_count(), kBlock, 1);
  const std::vector<double> head = random_head<double>(kShape, 2);
  Rollout<double> rollout(DeviceFeatureSet::improved, kShape, true);
  rollout.bind(input);
  Rng rng(3);
  rollout.act(embedding, head.data(), Deciding::sampled, rng);
  Embedding<double> gradient;
  gradient.resize(input.op_count(), kBlock);
  std::vector<double> head_gradient(head.size(), 0.0);
  rollout.backward(head.data(), {1, 1, 1}, gradient, head_gradient.data());
  for (const auto* part : {&gradient.current, &gradient.placed, &gradient.producer, &head_gradient})
    for (const double value : *part) EXPECT_EQ(value, 0);
  // SEL chooses all the same.
  EXPECT_GT(std::abs(*std::max_element(gradient.score.begin(), gradient.score.end())), 1e-3);
}

TEST(AMask, LeavesNoGradientForTheMaskedDevice) {
  // Op 1 may go to devices 0 and 1 only, and op 0 sits on device 2. Whatever op 0 adds to the sum of device 2 has no
  // influence then.
  GraphBuilder builder("masked");
  for (OpId op = 0; op < 2; ++op) {
    OpSpec spec;
    spec.explicit_times["a"] = 1;
    spec.explicit_times["b"] = op == 0 ? 1 : Costs::kNever;
    builder.add_op(std::move(spec));
  }
  builder.add_consumer(builder.add_tensor(0, 0, 1.0), 1);
  const Problem world(std::move(builder).build(), machine_of({"a", "a", "b"}));
  const PolicyInput input(world);
  constexpr HeadShape kShape;
  const Embedding<double> embedding = random_embedding<double>(2, kBlock, 1);
  const std::vector<double> head = random_head<double>(kShape, 2);
  Rollout<double> rollout(DeviceFeatureSet::improved, kShape, true);
  rollout.bind(input);
  for (const DeviceId first : {DeviceId{2}, DeviceId{0}}) {
    rollout.follow(embedding, head.data(), std::vector<OpId>{0, 1}, std::vector<DeviceId>{first, 1});
    Embedding<double> gradient;
    gradient.resize(2, kBlock);
    std::vector<double> head_gradient(head.size(), 0.0);
    rollout.backward(head.data(), {1, 1, 1}, gradient, head_gradient.data());
    double of_first = 0;
    for (std::size_t k = 0; k < kBlock; ++k) of_first += std::abs(gradient.placed[k]) + std::abs(gradient.producer[k]);
    EXPECT_EQ(of_first > 0, first != 2);
  }
}

}  // namespace
}  // namespace doppler::test
