#include "doppler/learn/rnn/rnn_policy.h"
#include "tests/learn/unit_policy.h"

namespace doppler::test {
namespace {

constexpr const char* kSmallRnn = "rnn width 32 groups 16";
// A central difference of a sum of some dozen outputs is right to about that.
constexpr double kRnnTolerance = 1e-7;

TEST(Rnn, KeepsPinsAndGroupsWhereGroupsOfOpsHaveMembersThatMayNotBeTogether) {
  // Ten ops in three groups: what is pinned elsewhere than its group goes its own way.
  const auto world = mixed_world({{5, 1}, {0, 2}});
  sample_placements("rnn width 32 groups 3", *world, [](const std::vector<DeviceId>& device_of_op) {
    EXPECT_EQ(device_of_op[5], 1U);
    EXPECT_EQ(device_of_op[0], 2U);
    EXPECT_EQ(device_of_op[6], device_of_op[8]);
  });
}
TEST(Rnn, DecidesTheSameForTheSameSeed) { expect_the_same_for_the_same_seed(kSmallRnn); }
TEST(Rnn, FollowsItsOwnDecisionsWithTheSameProbabilityAndGradient) { expect_own_decisions_followed(kSmallRnn); }
TEST(Rnn, HasTheGradientOfItsLogProbability) { expect_gradient_of_log_probability(kSmallRnn); }
// The pairs are chains, which are groups from the beginning: what is to be learned is two to a device.
TEST(Rnn, LearnsToSpreadGroups) { expect_learning(kSmallRnn, 200, 4.5); }

TEST(Rnn, RefusesTooManyDevicesOrOps) {
  EXPECT_EQ(refusal_of(kSmallRnn, Problem(graph_of({1, 1}, {{0, 1, 1}}), uniform_machine(65))),
            "here: 65 devices; required at most 64 for rnn");
  const Problem large(graph_of(std::vector<Seconds>((1 << 20) + 1, 1), {}), uniform_machine(1));
  EXPECT_EQ(refusal_of(kSmallRnn, large),
            "here: 1048577 ops; required at most 1048576 for rnn, which keeps the features of every op");
}

TEST(Rnn, RefusesDescriptionsOfOtherSizes) {
  for (const char* text : {"rnn", "rnn width 33 groups 4", "rnn width 512 groups 4", "rnn width 32 groups 0",
                           "rnn width 32 groups 257", "rnn width 32 groups 4 more"})
    EXPECT_THROW(make_policy(text, Rng(1)), InputError) << text;
}

TEST(Rnn, IsBlindToWhatIsLeftOutAndStaysSo) {
  const auto policy = make_policy(kSmallRnn, Rng(1));
  policy->leave_out("adjacency");
  EXPECT_THROW(policy->leave_out("everything"), InputError);
  // The weights of the features are the first parameters: rows of 4 · 32 for those of units, one for the work, and one
  // for each of 16 groups that it reads and 16 that read it.
  const std::size_t seen = (kUnitColumns + 1) * 128, all = seen + 2 * 16 * 128;
  const auto expect_blind = [&] {
    for (std::size_t i = 0; i < all; ++i) EXPECT_EQ(policy->parameters()[i] == 0, i >= seen) << i;
  };
  expect_blind();
  Learner learner(*policy, {});
  const auto task = layered_task();
  for (std::uint64_t i = 0; i < 3; ++i) learner.reinforce(*task, 1e-2, 0.01, Rng(i));
  expect_blind();
}

TEST(GroupsOfTheRecurrentPlacer, AreChainsWhileThereIsRoom) {
  // 0 → 1 → 2 is a chain; 3 and 4 both feed 5.
  const Problem world(graph_of({1, 2, 3, 4, 5, 6}, {{0, 1, 1}, {1, 2, 1}, {3, 5, 1}, {4, 5, 1}}), uniform_machine(2));
  const RnnInput roomy(world, 8);
  EXPECT_EQ(roomy.group_count(), 4U);
  const auto group = roomy.group_of_unit();
  const auto& units = roomy.units();
  const auto group_of = [&](OpId op) { return group[units.unit_of_op()[op]]; };
  EXPECT_EQ(group_of(0), group_of(1));
  EXPECT_EQ(group_of(1), group_of(2));
  for (const OpId a : {OpId{0}, OpId{3}, OpId{4}, OpId{5}})
    for (const OpId b : {OpId{0}, OpId{3}, OpId{4}, OpId{5}}) EXPECT_EQ(group_of(a) == group_of(b), a == b);
  // Four chains in two groups: the first two, in topological order, and the others.
  const RnnInput tight(world, 2);
  EXPECT_EQ(tight.group_count(), 2U);
  EXPECT_EQ(std::vector<std::uint32_t>(tight.group_of_unit().begin(), tight.group_of_unit().end()),
            (std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1}));
}

TEST(GroupsOfTheRecurrentPlacer, KnowWhomTheyReadAndWhoReadsThem) {
  const Problem world(graph_of({1, 1, 1}, {{0, 2, 1}, {1, 2, 1}}), uniform_machine(2));
  const RnnInput input(world, 4);
  ASSERT_EQ(input.group_count(), 3U);
  for (std::uint32_t group = 0; group < 3; ++group) {
    const float* row = input.features().data() + group * rnn_columns(4) + kUnitColumns + 1;
    for (std::uint32_t other = 0; other < 4; ++other) {
      EXPECT_EQ(row[other] == 1, group == 2 && other < 2) << group << " reads " << other;
      EXPECT_EQ(row[4 + other] == 1, group < 2 && other == 2) << group << " is read by " << other;
    }
  }
}

TEST(APlacementFromElsewhere, IsFollowedByMostOfEachGroupsTime) {
  // One group of three ops with one, one and three seconds: it goes where the longest is. What is not allowed does not
  // count: the second op is pinned to device 1.
  const Problem world(graph_of({1, 1, 3}, {{0, 1, 1}, {1, 2, 1}}), machine_of({"a", "a", "a"}), Rules{}, {{1, 1}});
  const auto policy = make_policy("rnn width 32 groups 1", Rng(1));
  policy->begin(policy->encode(world));
  Episode episode;
  policy->follow(episode, {}, std::vector<DeviceId>{0, 0, 2});
  EXPECT_EQ(episode.device_of_op, (std::vector<DeviceId>{2, 1, 2}));
}

TEST(TheGradientOfTheRecurrentPlacer, IsRight) {
  const auto world = mixed_world();
  const RnnInput input(*world, 16);
  RnnNetwork<double> network({.width = 32, .groups = 16}, Rng(7));
  Rng rng(8);
  for (double& parameter : network.parameters().values()) parameter += rng.uniform(-0.1, 0.1);
  std::vector<double> weights(std::size_t{input.group_count()} * 3);
  for (double& weight : weights) weight = rng.uniform(-1, 1);
  Tape<double> encoder, decoder;
  std::vector<Tape<double>::Matrix> logits;
  // The sum of all logits with random weights; the devices are 0, 1, 2 in turn.
  const auto loss = [&] {
    encoder.clear(), decoder.clear(), logits.clear();
    double total = 0;
    network.decode(decoder, encoder, network.encode(encoder, input), [&](std::size_t group, auto row) {
      logits.push_back(row);
      for (std::size_t i = 0; i < 3; ++i) total += weights[3 * group + i] * decoder.value(row)[i];
      return static_cast<DeviceId>(group % 3);
    });
    return total;
  };
  loss();
  for (std::size_t group = 0; group < logits.size(); ++group)
    std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(3 * group), 3, decoder.gradient(logits[group]).begin());
  decoder.backward();
  encoder.backward();
  const std::vector<double> found(network.parameters().gradients().begin(), network.parameters().gradients().end());
  for (std::size_t i = 0; i < found.size(); i += 41)
    ASSERT_NEAR(found[i], difference(loss, network.parameters().values()[i]), kRnnTolerance) << "parameter " << i;
}

}  // namespace
}  // namespace doppler::test
