#include "doppler/learn/train/generated_tasks.h"

#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "doppler/graph/levels.h"

namespace doppler {
namespace {

TEST(GeneratedTasks, AreOfAllFamiliesAndStayInTheirRanges) {
  const GeneratedTaskOptions options;
  std::set<std::string> families;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const auto owned = generate_task(options, Rng(i));
    const Problem& problem = owned->problem();
    const std::string& title = problem.graph().title();
    families.insert(title.substr(0, title.find_first_of(" -")));
    EXPECT_GE(problem.op_count(), options.fewest_ops);
    EXPECT_LE(problem.op_count(), options.most_ops);
    EXPECT_GE(problem.device_count(), options.fewest_devices);
    EXPECT_LE(problem.device_count(), options.most_devices);
  }
  EXPECT_EQ(families, (std::set<std::string>{"chain", "layered", "random", "series"}));
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
