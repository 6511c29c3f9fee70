#include "doppler/place/portfolio.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/graph/formats/read_graph.h"
#include "tests/place/world.h"

namespace doppler {
namespace {

using test::World;

MethodOptions evaluations(std::uint64_t count) {
  MethodOptions options;
  options.budget = Budget::for_evaluations(count);
  return options;
}

TEST(APortfolio, NamesItsWinner) {
  const World world(test::topcuoglu_graph(), test::machine_of({"p1", "p2", "p3"}));
  const Proposal proposal = portfolio(world.problem, evaluations(20'000));
  EXPECT_EQ(method_by_name(proposal.winner).name, proposal.winner);
  EXPECT_LE(world.makespan(proposal), 80);  // HEFT's makespan in the paper
}

// Do no harm: on graphs where one device is optimal, and on every other, never worse than the cheap methods.
TEST(APortfolio, IsNeverWorseThanTheCheapMethodsOnProfiledNetworks) {
  const std::filesystem::path directory = std::filesystem::path(DOPPLER_SHARED_DATA) / "instances" / "dnn_partitioning";
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << directory << " is absent";
  int instances = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".json") continue;
    ++instances;
    for (const char* machine : {"uniform:4", "uniform:14:2GiB"}) {
      const World world(read_graph(entry.path().string()).graph, load_machine(machine));
      const Seconds best = world.makespan(portfolio(world.problem, evaluations(4000)));
      for (const char* name : {"single", "heft", "etf", "metis"}) {
        try {
          const Proposal proposal = method_by_name(name).run(world.problem, evaluations(4000));
          EXPECT_LE(best, world.makespan(proposal)) << entry.path() << " on " << machine << " against " << name;
        } catch (const InfeasibleError&) {  // nothing to be worse than
        }
      }
    }
  }
  EXPECT_EQ(instances, 3);
}

}  // namespace
}  // namespace doppler
