#include "doppler/learn/train/generated_tasks.h"

#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "doppler/graph/levels.h"

namespace doppler {
namespace {

TEST(GeneratedTasks, AreOfAllFamiliesAndStayInTheirRanges) {
  const GeneratedTaskOptions options;
  constexpr OpId kWidestLayer = 17;  // Of a network in shards, whose last layer is complete, with its parameter.
  std::set<std::string> families;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto owned = generate_task(options, Rng(i));
    const Problem& problem = owned->problem();
    const std::string& title = problem.graph().title();
    families.insert(title.substr(0, title.find_first_of(" -")));
    EXPECT_GE(problem.op_count(), options.fewest_ops);
    EXPECT_LE(problem.op_count(), options.most_ops + kWidestLayer);
    EXPECT_GE(problem.device_count(), options.fewest_devices);
    EXPECT_LE(problem.device_count(), options.most_devices);
  }
  EXPECT_EQ(families, (std::set<std::string>{"chain", "layered", "network", "random", "series"}));
}

TEST(GeneratedTasks, HaveAllRulesAndTimesThatVaryUnlessSomeAreAskedFor) {
  std::set<Discipline> disciplines;
  std::set<Links> links;
  int varied = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto owned = generate_task({.most_ops = 60}, Rng(i));
    disciplines.insert(owned->problem().rules().discipline);
    links.insert(owned->problem().rules().links);
    varied += owned->objective().drawn() ? 1 : 0;
    const auto plain = generate_task({.most_ops = 60, .varied = 0, .mixed_rules = false}, Rng(i));
    EXPECT_EQ(plain->problem().rules(), Rules{});
    EXPECT_TRUE(plain->objective().exact());
  }
  EXPECT_EQ(disciplines, (std::set{Discipline::fifo, Discipline::priority, Discipline::ordered}));
  EXPECT_EQ(links, (std::set{Links::free, Links::channels, Links::receiver}));
  EXPECT_GT(varied, 15);  // Half of 60 are expected.
  EXPECT_LT(varied, 45);
}

TEST(GeneratedTasks, CutNetworksIntoShardsThatReadTheirCounterparts) {
  int found = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto owned = generate_task({.most_ops = 400}, Rng(i));
    const Graph& graph = owned->problem().graph();
    if (!graph.title().starts_with("network in shards")) continue;
    ++found;
    // Layers that mix everything or are not cut are the exception: most ops that compute read few others.
    std::size_t few = 0, computing = 0;
    for (OpId op = 0; op < graph.op_count(); ++op) {
      if (graph.inputs(op).empty()) continue;
      ++computing;
      few += graph.inputs(op).size() <= 5 ? 1 : 0;
    }
    EXPECT_GT(2 * few, computing) << graph.title();
  }
  EXPECT_GT(found, 2);
}

TEST(GeneratedTasks, IncludeGraphsWithoutParallelism) {
  int found = 0;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const auto owned = generate_task({}, Rng(i));
    const Costs& costs = owned->problem().costs();
    if (!costs.graph().title().starts_with("chain with parameters")) continue;
    ++found;
    // Every op that takes time is on the one path, so the longest path is all the work there is.
    const std::vector<Seconds>& times = costs.mean_times();
    const double work = std::accumulate(times.begin(), times.end(), 0.0);
    EXPECT_NEAR(levels(costs.graph(), times, {}).longest / work, 1, 1e-9);
  }
  EXPECT_GT(found, 2);
}

TEST(GeneratedTasks, FollowFromTheirSeed) {
  EXPECT_EQ(generate_task({}, Rng(7))->fingerprint(), generate_task({}, Rng(7))->fingerprint());
  EXPECT_NE(generate_task({}, Rng(7))->fingerprint(), generate_task({}, Rng(8))->fingerprint());
}

}  // namespace
}  // namespace doppler
