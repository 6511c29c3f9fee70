#include <cmath>

#include "doppler/base/error.h"
#include "doppler/learn/hsdag/hsdag_network.h"
#include "doppler/learn/policy_table.h"
#include "tests/learn/support.h"
#include "tests/learn/unit_policy.h"

namespace doppler::test {
namespace {

using Edges = std::vector<LevelGraph::Edge>;

// 0 → 1 → 2 → 4, 1 → 3 → 4, 4 → 5: a fork, a join, a tail.
LevelGraph fork_and_join() { return {6, {{0, 1}, {1, 2}, {1, 3}, {2, 4}, {3, 4}, {4, 5}}}; }

TEST(Colocation, JoinsChainsAndNothingElse) {
  const Grouping groups = colocated(fork_and_join(), Colocation::chain);
  EXPECT_EQ(groups.group_of_node, (std::vector<std::uint32_t>{0, 0, 1, 2, 3, 3}));
  EXPECT_EQ(groups.group_count, 4u);
}

TEST(Colocation, AsPublishedJoinsWhateverHasOnePredecessor) {
  // 2 and 3 have one predecessor each, although it feeds both.
  const Grouping groups = colocated(fork_and_join(), Colocation::published);
  EXPECT_EQ(groups.group_of_node, (std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1}));
}

TEST(ALevelGraph, IsContractedToEachEdgeOnce) {
  const LevelGraph coarse = contracted(fork_and_join(), std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2}, 3);
  EXPECT_EQ(coarse.edges, (Edges{{0, 1}, {1, 2}}));
}

TEST(GraphParsing, JoinsEveryNodeToItsDominantNeighbour) {
  // A path of five. Dominant edges by score: 0-1 of 0 (its only one), 1-2 of 1 and 2, 3-4 of 3 and 4.
  const Edges path = {{0, 1}, {1, 2}, {2, 3}, {3, 4}};
  const std::vector<float> scores = {0.3F, 0.9F, 0.1F, 0.8F};
  EXPECT_EQ(parsed(5, path, scores, 0).group_of_node, (std::vector<std::uint32_t>{0, 0, 0, 1, 1}));
  // With at least three clusters the weakest join, 0-1, is not made.
  EXPECT_EQ(parsed(5, path, scores, 3).group_of_node, (std::vector<std::uint32_t>{0, 1, 1, 2, 2}));
  EXPECT_EQ(parsed(5, path, scores, 5).group_count, 5u);
}

TEST(GraphParsing, EndsWithOneClusterAsPublished) {
  // Whatever the scores, each level halves a connected graph at least.
  Rng rng(3);
  LevelGraph graph{.node_count = 728};
  for (std::uint32_t node = 1; node < graph.node_count; ++node) graph.edges.emplace_back(rng.below(node), node);
  int levels = 0;
  for (; graph.node_count > 1; ++levels) {
    const Edges edges = undirected_edges(graph);
    std::vector<float> scores;
    for (std::size_t i = 0; i < edges.size(); ++i) scores.push_back(static_cast<float>(rng.uniform()));
    const Grouping clusters = parsed(graph.node_count, edges, scores, 0);
    ASSERT_LE(2 * clusters.group_count, graph.node_count);
    graph = contracted(graph, clusters.group_of_node, clusters.group_count);
  }
  EXPECT_LE(levels, 9);  // 2⁹ < 728 < 2¹⁰
}

TEST(FractalDimension, IsTheSlopeOfTheNumberOfNodesWithinARadius) {
  // From the end of a path of four N(r) = r for r = 1, 2, 3: dimension 1. From its second node N = 2, 3: the slope of
  // (0, ln 2), (ln 2, ln 3) is ln 1.5 / ln 2.
  const LevelGraph path{4, {{0, 1}, {1, 2}, {2, 3}}};
  const std::vector<float> dimensions = fractal_dimensions(path);
  EXPECT_NEAR(dimensions[0], 1, 1e-6);
  EXPECT_NEAR(dimensions[1], std::log(1.5) / std::log(2.0), 1e-6);
  // In a star the middle sees all at once, which is one radius: 0. A leaf sees 1, then 4: ln 4 / ln 2.
  const std::vector<float> star = fractal_dimensions({5, {{0, 1}, {0, 2}, {0, 3}, {0, 4}}});
  EXPECT_EQ(star[0], 0);
  EXPECT_NEAR(star[1], 2, 1e-6);
}

TEST(FractalDimension, IsEstimatedWellOnLargeGraphs) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    Rng rng(seed);
    LevelGraph graph{.node_count = 1900};  // exact is still what fractal_dimensions() does
    for (std::uint32_t node = 1; node < graph.node_count; ++node)
      for (int i = 0; i < 2; ++i) graph.edges.emplace_back(node - 1 - rng.below(std::min(node, 25u)), node);
    std::sort(graph.edges.begin(), graph.edges.end());
    graph.edges.erase(std::unique(graph.edges.begin(), graph.edges.end()), graph.edges.end());
    const std::vector<float> exact = fractal_dimensions(graph), estimate = sampled_fractal_dimensions(graph, seed);
    double error = 0, mean = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      error += std::abs(static_cast<double>(exact[i] - estimate[i])) / 1900;
      mean += static_cast<double>(exact[i]) / 1900;
    }
    EXPECT_LT(error, 0.05 * mean) << seed;
  }
}

TEST(AnHsdagInput, KnowsTheShapesOfOutputs) {
  const auto features_with = [](std::vector<std::uint32_t> shape) {
    GraphBuilder builder("shaped");
    for (OpId op = 0; op < 3; ++op) builder.add_op({.explicit_times = {{"*", 1}}});
    const TensorId tensor = builder.add_tensor(0, 64, 1.0);
    builder.set_shape(tensor, std::move(shape));
    builder.add_consumer(tensor, 1);
    return HsdagInput(Problem(std::move(builder).build(), uniform_machine(2)), {}).units().features;
  };
  EXPECT_NE(features_with({8, 8}), features_with({64}));
  EXPECT_EQ(features_with({}), features_with({}));
}

// Derivatives of Σ weight · logit, over all levels that decide, by every parameter.
TEST(TheHsdagNetwork, HasTheGradientOfCentralDifferences) {
  const auto world = mixed_world();
  for (const HsdagVariant variant : {HsdagVariant::flat, HsdagVariant::fine, HsdagVariant::published}) {
    HsdagNetwork<double> network({.variant = variant, .width = 32}, Rng(4));
    const HsdagInput input(*world, {});
    const auto& first = network.first_level(input).features;
    const std::vector<double> features(first.begin(), first.end());
    const auto loss = [&](bool backward) {
      Tape<double> tape;
      network.clear();
      const auto& parse = network.parse(tape, input, features, 0);
      Rng rng(5);
      double sum = 0;
      for (const auto& level : parse.levels)
        for (std::size_t i = 0; level.decides && i < tape.value(level.logits).size(); ++i) {
          const double weight = rng.uniform(-1, 1);
          sum += weight * tape.value(level.logits)[i];
          tape.gradient(level.logits)[i] += weight;
        }
      if (backward) tape.backward();
      return sum;
    };
    loss(true);
    const std::vector<double> gradient(network.parameters().gradients().begin(),
                                       network.parameters().gradients().end());
    const auto parameters = network.parameters().values();
    std::size_t moved = 0;
    for (std::size_t i = 0; i < parameters.size(); i += stride(7)) {
      ASSERT_NEAR(gradient[i], difference([&] { return loss(false); }, parameters[i]), 1e-5) << i;
      moved += gradient[i] != 0;
    }
    EXPECT_GT(moved, parameters.size() / stride(7) / 4);
  }
}

// The number of parts of a graph that are not connected with one another.
std::uint32_t components(LevelGraph graph) {
  while (!graph.edges.empty()) {
    const Edges edges = undirected_edges(graph);
    const Grouping joined = parsed(graph.node_count, edges, std::vector<float>(edges.size()), 0);
    graph = contracted(graph, joined.group_of_node, joined.group_count);
  }
  return graph.node_count;
}

TEST(TheHsdagNetwork, StopsMergingInTimeUnlessPublished) {
  const Problem problem(generate_layered({.ops = 200, .width = 8, .degree = 5, .seed = 3, .costs = {}}),
                        load_machine("p100x4"));
  const HsdagInput input(problem, {});
  const auto clusters = [&](HsdagVariant variant) {
    const HsdagInput own(problem,
                         {.rule = variant == HsdagVariant::published ? Colocation::published : Colocation::chain});
    HsdagNetwork<float> network({.variant = variant}, Rng(1));
    Tape<float> tape;
    return network.parse(tape, own, network.first_level(own).features, 0).levels.back().node_count;
  };
  EXPECT_EQ(clusters(HsdagVariant::published), components(input.units().graph));
  EXPECT_LT(clusters(HsdagVariant::published), 5u);
  EXPECT_GE(clusters(HsdagVariant::flat), input.groups().graph.node_count / 3);
  EXPECT_GE(clusters(HsdagVariant::fine), input.groups().graph.node_count / 3);
}

TEST(AnHsdagPolicy, HasTheGradientOfItsLogProbability) {
  // With METIS's clusters none of them depends on the parameters, so that the whole of it can be differentiated: what
  // the levels decide, the attraction to parents, and what the state of the episode says of devices.
  expect_gradient_of_log_probability("hsdag+ width 32 clusters metis");
  expect_gradient_of_log_probability("hsdag width 32 steps 1 clusters metis");
}

TEST(AnHsdagInput, HasClustersOfMetisIfAskedFor) {
  const Problem problem(generate_layered({.ops = 200, .width = 8, .degree = 5, .seed = 3, .costs = {}}),
                        load_machine("p100x4"));
  const HsdagInput input(problem, {.metis = true});
  const std::uint32_t groups = input.groups().graph.node_count;
  ASSERT_EQ(input.clusters().group_of_node.size(), groups);
  EXPECT_LE(input.clusters().group_count, fewest_clusters(groups, 4));
  EXPECT_GT(input.clusters().group_count, fewest_clusters(groups, 4) / 2);
  EXPECT_EQ(input.clusters().group_of_node, HsdagInput(problem, {.metis = true}).clusters().group_of_node);
  std::uint32_t next = 0;  // They are numbered by their first group.
  for (const std::uint32_t cluster : input.clusters().group_of_node) {
    EXPECT_LE(cluster, next);
    next = std::max(next, cluster + 1);
  }
}

TEST(AnHsdagPolicy, WithoutTheStateDoesNotSeeIt) {
  // Two equal ops on two equal devices: only the state says that the first has made one of them busier.
  const Problem problem(graph_of({1, 1}, {}), uniform_machine(2));
  const auto policy = make_policy("hsdag+ width 32 clusters metis", Rng(1));
  const auto probability_of_the_second = [&](DeviceId first) {
    Episode episode;
    policy->begin(policy->encode(problem));
    policy->follow(episode, {}, std::vector<DeviceId>{first, 1});
    const double both = episode.log_probability;
    policy->follow(episode, {}, std::vector<DeviceId>{first, 0});
    return both - episode.log_probability;
  };
  EXPECT_NE(probability_of_the_second(0), probability_of_the_second(1));
  policy->leave_out("state");
  EXPECT_NEAR(probability_of_the_second(0), probability_of_the_second(1), 1e-5);
  EXPECT_THROW(make_policy("hsdag width 32 steps 1", Rng(1))->leave_out("state"), InputError);
}

TEST(AnHsdagPolicy, WithoutAFeatureDoesNotSeeIt) {
  const auto policy = make_policy("hsdag+ width 32", Rng(1));
  EXPECT_THROW(policy->leave_out("nothing"), InputError);
  policy->leave_out("position");
  const auto shapeless = [&](bool shaped) {
    GraphBuilder builder("shaped");
    for (OpId op = 0; op < 6; ++op) builder.add_op({.explicit_times = {{"*", 1}}});
    for (OpId op = 0; op < 5; ++op) {
      const TensorId tensor = builder.add_tensor(op, 64, 1.0);
      if (shaped) builder.set_shape(tensor, {op, 8});
      builder.add_consumer(tensor, op + 1);
    }
    Episode episode;
    const Problem problem(std::move(builder).build(), uniform_machine(2));
    policy->begin(policy->encode(problem));
    policy->follow(episode, {}, std::vector<DeviceId>{0, 1, 0, 1, 1, 0});
    return episode.log_probability;
  };
  EXPECT_NE(shapeless(true), shapeless(false));
  policy->leave_out("shape");
  EXPECT_EQ(shapeless(true), shapeless(false));
}

}  // namespace
}  // namespace doppler::test
