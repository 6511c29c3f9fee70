// A policy knows ops and devices by what they are, not by their number, and works for any number of them.

#include "tests/learn/support.h"

namespace doppler::test {
namespace {

// Different orders of summation.
constexpr double kRounding = 1e-6;

struct Fleet {
  std::vector<Device> devices;
  std::vector<Link> links;
  Machine machine() const { return Machine("fleet", devices, links); }
  // Device i becomes device to[i].
  Fleet permuted(const std::vector<DeviceId>& to) const {
    Fleet result = *this;
    const std::size_t n = devices.size();
    for (std::size_t i = 0; i < n; ++i) {
      result.devices[to[i]] = devices[i];
      for (std::size_t j = 0; j < n; ++j) result.links[to[i] * n + to[j]] = links[i * n + j];
    }
    return result;
  }
};

Fleet fleet_of(const std::vector<std::string>& types, Rng rng, bool unequal_links) {
  Fleet fleet;
  for (const std::string& type : types) {
    Device device;
    device.name = "d" + std::to_string(fleet.devices.size());
    device.type = type;
    device.slots = type == "c" ? 2 : 1;
    fleet.devices.push_back(device);
  }
  fleet.links.resize(types.size() * types.size());
  if (unequal_links)
    for (Link& link : fleet.links) link.cost_factor = 1 + rng.below(3);
  return fleet;
}

Graph small_graph(Rng rng) {
  GraphBuilder builder("small");
  for (OpId op = 0; op < 20; ++op) {
    OpSpec spec;
    const Seconds time = rng.uniform(1, 5);
    spec.explicit_times = {{"a", time}, {"b", 2 * time}, {"c", op % 5 == 0 ? Costs::kNever : 0.7 * time}};
    builder.add_op(std::move(spec));
  }
  for (OpId op = 0; op < 20; ++op) {
    const TensorId tensor = builder.add_tensor(op, 0, rng.uniform(0.5, 4));
    for (OpId consumer = op + 1; consumer < 20; ++consumer)
      if (rng.below(6) == 0) builder.add_consumer(tensor, consumer);
  }
  return std::move(builder).build();
}

void expect_equivariant(const Fleet& fleet, const std::vector<DeviceId>& to) {
  const std::vector<Pin> pins = {{3, 1}}, moved_pins = {{3, to[1]}};
  const Problem world(small_graph(Rng(1)), fleet.machine(), {}, pins);
  const Problem moved(small_graph(Rng(1)), fleet.permuted(to).machine(), {}, moved_pins);
  const PolicyInput input(world), moved_input(moved);
  Gnn<double> network({}, Rng(2));
  Embedding<double> embedding, moved_embedding;
  network.embed(input, {}, embedding);
  network.embed(moved_input, {}, moved_embedding);
  Rollout<double> rollout(network.device_features(), network.head_shape(), true),
      moved_rollout(network.device_features(), network.head_shape(), true);
  rollout.bind(input);
  moved_rollout.bind(moved_input);
  Rng rng(3);
  for (int episode = 0; episode < 5; ++episode) {
    rollout.act(embedding, network.head(), Deciding::sampled, rng);
    std::vector<DeviceId> devices;
    for (const DeviceId device : rollout.device_of_op()) devices.push_back(to[device]);
    moved_rollout.follow(moved_embedding, network.head(), rollout.order(), devices);
    EXPECT_NEAR(rollout.log_probability(), moved_rollout.log_probability(), 20 * kRounding);
    for (std::size_t step = 0; step < input.op_count(); ++step)
      for (DeviceId device = 0; device < to.size(); ++device)
        EXPECT_NEAR(rollout.probability(step, device), moved_rollout.probability(step, to[device]), kRounding);
  }
}

TEST(APolicy, PermutesItsProbabilitiesWithEqualDevices) {
  expect_equivariant(fleet_of({"a", "a", "a", "a"}, Rng(4), false), {2, 0, 3, 1});
}
TEST(APolicy, PermutesItsProbabilitiesWithDifferentDevices) {
  expect_equivariant(fleet_of({"a", "b", "c", "a", "b"}, Rng(4), false), {4, 2, 0, 1, 3});
}
TEST(APolicy, PermutesItsProbabilitiesWithUnequalLinks) {
  expect_equivariant(fleet_of({"a", "b", "c", "a", "b"}, Rng(4), true), {4, 2, 0, 1, 3});
}

Machine p100s(DeviceId count) {
  std::vector<Device> devices(count, load_machine("p100x4").device(0));
  for (DeviceId i = 0; i < count; ++i) devices[i].name = "d" + std::to_string(i);
  return Machine("p100s", devices, std::vector<Link>(count * count, load_machine("p100x4").link(0, 1)));
}

TEST(APolicy, RunsOnGraphsAndMachinesOfAnySizeWithTheSameParameters) {
  Gnn<float> network({}, Rng(1));
  const std::size_t parameters = network.parameters().size();
  Rollout<float> rollout(network.device_features(), network.head_shape(), true);
  Embedding<float> embedding, gradient;
  Rng rng(2);
  for (const OpId ops : {1U, 7U, 300U, 7U})  // smaller again: nothing is left over
    for (DeviceId devices = 1; devices <= 16; ++devices) {
      LayeredOptions options;
      options.ops = ops;
      options.width = 4;
      const Problem world(generate_layered(options), p100s(devices));
      const PolicyInput input(world);
      network.embed(input, {}, embedding);
      rollout.bind(input);
      rollout.act(embedding, network.head(), Deciding::sampled, rng);
      EXPECT_EQ(rollout.order().size(), ops);
      EXPECT_TRUE(std::isfinite(rollout.log_probability()));
      EXPECT_LE(rollout.log_probability(), 1e-6);
      for (const DeviceId device : rollout.device_of_op()) EXPECT_LT(device, devices);
      gradient.resize(ops, kBlock);
      gradient.fill_zero();
      rollout.backward(network.head(), {1, 1, 1}, gradient, network.head_gradient());
      network.backward(gradient);
      for (const float value : network.gradients()) ASSERT_TRUE(std::isfinite(value));
    }
  EXPECT_EQ(network.parameters().size(), parameters);
}

TEST(APolicy, GivesAnOpTheSameScoreWhateverItsId) {
  // Every op reads the op before it, so that there is one topological order and the feature "position" is not a
  // matter of ids.
  constexpr OpId kOps = 30;
  Rng rng(1);
  std::vector<OpId> id(kOps);
  std::iota(id.begin(), id.end(), 0);
  for (OpId i = kOps - 1; i > 0; --i) std::swap(id[i], id[rng.below(i + 1)]);
  std::vector<Seconds> times(kOps), permuted_times(kOps);
  std::vector<Edge> edges, permuted_edges;
  for (OpId op = 0; op < kOps; ++op) {
    times[op] = permuted_times[id[op]] = rng.uniform(1, 9);
    for (OpId producer = 0; producer < op; ++producer)
      if (producer + 1 == op || rng.below(5) == 0) {
        const Seconds transfer = rng.uniform(0, 5);
        edges.push_back({producer, op, transfer});
        permuted_edges.push_back({id[producer], id[op], transfer});
      }
  }
  const Problem world(graph_of(times, edges), machine_of({"a", "a", "a"}));
  const Problem permuted(graph_of(permuted_times, permuted_edges), machine_of({"a", "a", "a"}));
  Gnn<double> network({}, Rng(2));
  Embedding<double> embedding, permuted_embedding;
  network.embed(PolicyInput(world), {}, embedding);
  network.embed(PolicyInput(permuted), {}, permuted_embedding);
  for (OpId op = 0; op < kOps; ++op) {
    EXPECT_NEAR(embedding.score[op], permuted_embedding.score[id[op]], kRounding);
    for (std::size_t k = 0; k < kBlock; ++k)
      EXPECT_NEAR(embedding.current[op * kBlock + k], permuted_embedding.current[id[op] * kBlock + k], kRounding);
  }
}

}  // namespace
}  // namespace doppler::test
