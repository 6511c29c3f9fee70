#include "doppler/base/error.h"
#include "doppler/learn/placeto/placeto_policy.h"
#include "doppler/learn/policy_table.h"
#include "doppler/learn/train/trainer.h"
#include "tests/learn/placeto_support.h"
#include "tests/support/sanitized.h"

namespace doppler::test {
namespace {

constexpr const char* kOnce = "placeto width 32 rounds 2 messages episode";
constexpr const char* kAtEveryStep = "placeto width 32 rounds 2 messages step";

class Placeto : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Messages, Placeto, testing::Values(kOnce, kAtEveryStep), [](const auto& test) {
  return test.param == std::string_view(kOnce) ? "OncePerEpisode" : "AtEveryStep";
});

TEST_P(Placeto, SaysTheMakespanBeforeAndAfterEveryDecision) {
  const auto world = mixed_world();
  const auto policy = make_policy(GetParam(), Rng(1));
  policy->begin(policy->encode(*world));
  Episode episode;
  Rng rng(2);
  policy->act(episode, Deciding::sampled, rng);
  ASSERT_EQ(episode.progress.size(), world->op_count() + 1);
  ExactObjective objective(*world);
  const PlacetoInput input("mixed", *world, {.rounds = 1, .per_step = false, .most_rows = 100});
  Placement now{.device_of_op = std::vector<DeviceId>(world->op_count())};
  for (OpId op = 0; op < world->op_count(); ++op) now.device_of_op[op] = input.start()[input.node_of_op(op)];
  EXPECT_EQ(episode.progress[0], objective.value(now));
  for (OpId step = 0; step < world->op_count(); ++step) {
    const OpId op = world->graph().topological_order()[step];
    for (const OpId member : world->unit(op)) now.device_of_op[member] = episode.device_of_op[op];
    EXPECT_EQ(episode.progress[step + 1], objective.value(now)) << "step " << step;
  }
  EXPECT_EQ(now.device_of_op, episode.device_of_op);

  policy->leave_out("credit");
  policy->act(episode, Deciding::sampled, rng);
  EXPECT_TRUE(episode.progress.empty());
}

TEST_P(Placeto, CreditsEveryDecisionWithItsOwnWeight) {
  // The weights of the steps are added to that of all decisions: 1 everywhere is the same as one more for all.
  const auto world = mixed_world();
  const auto policy = make_policy(GetParam(), Rng(1));
  const auto gradient_of = [&](const EpisodeLoss& loss) {
    std::ranges::fill(policy->gradients(), 0.0F);
    policy->begin(policy->encode(*world));
    Episode episode;
    Rng rng(2);
    policy->act(episode, Deciding::sampled, rng);
    policy->backward(episode, loss);
    policy->finish();
    return std::vector<float>(policy->gradients().begin(), policy->gradients().end());
  };
  std::vector<double> ones(world->op_count(), 1.0), last(world->op_count(), 0.0);
  EXPECT_EQ(gradient_of({.decisions = 0.5, .steps = ones}), gradient_of({.decisions = 1.5}));
  last.back() = 1;
  EXPECT_NE(gradient_of({.steps = last}), gradient_of({.decisions = 1}));
  EXPECT_NE(gradient_of({.steps = last}), gradient_of({}));
}

TEST_P(Placeto, LooksOnlyAtRelationsThatAreNotLeftOut) {
  const auto world = mixed_world();
  for (const std::string_view part : {"ancestors", "descendants", "parallel"}) {
    const auto policy = make_policy(GetParam(), Rng(1));
    const auto log_probability = [&] {
      policy->begin(policy->encode(*world));
      Episode episode;
      policy->follow(episode, {}, std::vector<DeviceId>{0, 1, 1, 0, 0, 1, 1, 1, 1, 0});
      return episode.log_probability;
    };
    const double before = log_probability();
    policy->leave_out(part);
    EXPECT_NE(log_probability(), before) << part;
    Task task("mixed", std::make_unique<ExactObjective>(*world));
    Learner learner(*policy, {});
    for (std::uint64_t i = 0; i < 3; ++i) learner.reinforce(task, 1e-2, 0.01, Rng(i));
    const double after = log_probability();
    policy->leave_out(part);  // Would change what has come back.
    EXPECT_EQ(log_probability(), after) << part;
  }
}

// Four times a → b, c → d, one after the other, on two devices: a and d take 1 s, b and c 2 s. With b and c on one
// device that is 6 s at least. Apart, one of them is not with a and ends after 1 + 1.9 + 2 = 4.9 s at the earliest. If
// d is not with that one, it waits 2 s more for its result. If it is, it waits for that of the other, which is there
// after 1 + 2 + 2 s (c) or 1 + 2 + 4 s (b). So d ends after 6 s at least, and all on one device is optimal. List
// scheduling sends c away all the same, as 4.9 s is earlier than 5 s: d then ends after 4.9 + 2 + 1 = 7.9 s.
Graph four_diamonds() {
  std::vector<Seconds> times;
  std::vector<Edge> edges;
  for (OpId a = 0; a < 16; a += 4) {
    times.insert(times.end(), {1, 2, 2, 1});
    edges.insert(edges.end(), {{a, a + 1, 1.9}, {a, a + 2, 1.9}, {a + 1, a + 3, 4}, {a + 2, a + 3, 2}});
    if (a > 0) edges.push_back({a - 1, a, 1});
  }
  return graph_of(times, edges);
}
constexpr Seconds kOptimum = 4 * 6, kStart = 4 * 7.9;

TEST_P(Placeto, LearnsToReachTheOptimumThatItDoesNotStartWith) {
  const Problem problem(four_diamonds(), uniform_machine(2), Rules{});
  const auto policy = make_policy(GetParam(), Rng(1));
  TrainingOptions options;
  options.stages = {Stage::simulation};
  options.updates = fewer_if_sanitized(150);
  options.seed = 1;
  options.expert_share = 0;
  Trainer trainer(*policy, options);
  Task& task = trainer.add(make_task("diamonds", problem, false));
  const UpdateReport untrained = trainer.step().result;
  EXPECT_GT(untrained.best, kOptimum);
  EXPECT_GT(untrained.mean, 0.95 * kStart);
  UpdateReport trained;
  while (!trainer.finished()) trained = trainer.step().result;
  if (kSanitized) return;
  EXPECT_LT(trained.mean, 0.85 * untrained.mean);
  EXPECT_EQ(task.best_makespan(), kOptimum);
}

TEST_P(Placeto, RefusesGraphsThatAreTooLarge) {
  const auto policy = make_policy(GetParam(), Rng(1));
  const auto message = [&](const Problem& problem) -> std::string {
    try {
      policy->check_trainable("big", problem);
    } catch (const InputError& error) {
      EXPECT_THROW(policy->encode(problem), InputError);
      return error.what();
    }
    return "";
  };
  const auto chain = [](OpId ops, DeviceId devices) {
    return Problem(graph_of(std::vector<Seconds>(ops, 1), {}), uniform_machine(devices), Rules{});
  };
  EXPECT_EQ(
      message(chain(9000, 2)),
      "big: 9000 ops; required at most 2048 for placeto, which knows for every two of them whether one depends on "
      "the other");
  EXPECT_EQ(message(chain(2000, 200)), "big: 2000 ops on 200 devices; required at most 262144 pairs for placeto");
  EXPECT_EQ(message(chain(100, 100)), "");
  // A thousand ops that all read one and are all read by one: each hears of every other within two rounds.
  std::vector<Edge> edges;
  for (OpId op = 1; op <= 1000; ++op) edges.insert(edges.end(), {{0, op}, {op, 1001}});
  const Problem star(graph_of(std::vector<Seconds>(1002, 1), edges), uniform_machine(2), Rules{});
  EXPECT_EQ(message(star), "");
  std::vector<Edge> stars = edges;
  for (OpId op = 1002; op <= 2000; ++op) stars.insert(stars.end(), {{1001, op}, {op, 2001}});
  const Problem two_stars(graph_of(std::vector<Seconds>(2002, 1), stars), uniform_machine(2), Rules{});
  EXPECT_EQ(message(two_stars).substr(0, 30),
            GetParam() == std::string_view(kOnce) ? "" : "big: 2002 ops that hear of one");
}

class PlacetosNetwork : public testing::TestWithParam<bool> {};

TEST_P(PlacetosNetwork, HasTheGradientOfCentralDifferences) {
  PlacetoLoss loss(GetParam());
  loss();
  loss.backward();
  const std::vector<double> found(loss.network.parameters().gradients().begin(),
                                  loss.network.parameters().gradients().end());
  const auto parameters = loss.network.parameters().values();
  // Every third, which meets every block of parameters. A loss of order 10 is right to 1e-15 · 10 / kStep.
  for (std::size_t i = parameters.size() % 3; i < parameters.size(); i += stride(3))
    ASSERT_NEAR(found[i], difference([&] { return loss(); }, parameters[i]), 1e-6) << "parameter " << i;
  EXPECT_NE(found.back(), 0) << "the last parameter says how gladly ops stay";
}

INSTANTIATE_TEST_SUITE_P(Messages, PlacetosNetwork, testing::Bool(),
                         [](const auto& test) { return test.param ? "AtEveryStep" : "OncePerEpisode"; });

TEST(PlacetosRelations, AreThoseOfPaths) {
  // 0 → 1 → 3, 2 → 3, 4 alone.
  const Problem world(graph_of({1, 1, 1, 1, 1}, {{0, 1}, {1, 3}, {2, 3}}), machine_of({"a", "a"}));
  const PlacetoInput input("test", world, {.rounds = 1, .per_step = false, .most_rows = 100});
  const auto relation = [&](OpId op, OpId other) {
    return input.relation(input.node_of_op(op), input.node_of_op(other));
  };
  EXPECT_EQ(relation(3, 0), Relation::ancestor);
  EXPECT_EQ(relation(0, 3), Relation::descendant);
  EXPECT_EQ(relation(1, 2), Relation::parallel);
  EXPECT_EQ(relation(2, 0), Relation::parallel);
  EXPECT_EQ(relation(3, 4), Relation::parallel);
  EXPECT_EQ(relation(4, 3), Relation::parallel);
  EXPECT_EQ(relation(2, 2), Relation::self);
}

}  // namespace
}  // namespace doppler::test
