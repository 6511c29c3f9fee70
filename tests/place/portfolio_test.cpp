#include "doppler/place/search/portfolio.h"

#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/graph/formats/read_graph.h"
#include "tests/support/problems.h"

namespace doppler {
namespace {

MethodOptions after_evaluations(std::uint64_t count) {
  MethodOptions options;
  options.budget = Budget::for_evaluations(count);
  return options;
}

TEST(APortfolio, NamesItsWinner) {
  const Problem world(test::topcuoglu_graph(), test::machine_of({"p1", "p2", "p3"}));
  const Proposal proposal = test::run(portfolio, world, after_evaluations(20'000));
  EXPECT_EQ(method_by_name(proposal.winner).name, proposal.winner);
  EXPECT_LE(test::makespan(world, proposal), 80);  // HEFT's makespan in the paper
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
      const Problem world(read_graph(entry.path().string()).graph, load_machine(machine));
      const Seconds best = test::makespan(world, test::run(portfolio, world, after_evaluations(4000)));
      for (const char* name : {"single", "heft", "etf", "metis"}) {
        try {
          const Proposal proposal = test::run(method_by_name(name).run, world, after_evaluations(4000));
          EXPECT_LE(best, test::makespan(world, proposal)) << entry.path() << " on " << machine << " against " << name;
        } catch (const InfeasibleError&) {  // nothing to be worse than
        }
      }
    }
  }
  EXPECT_EQ(instances, 3);
}

// H (op 5) waits for three ops of 1 s on devices a, c and e; then T takes 8 s on a. On b, which L of 8 s wants from
// 1.001 s on, H goes first by a thousandth of a second, and all ends at 10.001 s; if one of the three is late, L goes
// first and H waits for it: 18 s. On a, H waits for another op and all ends at 10.5 s, whoever is late.
TEST(APortfolio, ChoosesByWhatIsToBeExpectedWhereTimesVary) {
  GraphBuilder builder("race");
  for (const std::map<std::string, Seconds>& times : std::vector<std::map<std::string, Seconds>>{{{"a", 1}},
                                                                                                 {{"c", 1}},
                                                                                                 {{"e", 1}},
                                                                                                 {{"b", 1.001}},
                                                                                                 {{"a", 0.5}},
                                                                                                 {{"a", 1}, {"b", 1}},
                                                                                                 {{"a", 8}},
                                                                                                 {{"b", 8}}}) {
    OpSpec op;
    for (const auto& [type, time] : times) op.explicit_times[type] = time;
    builder.add_op(std::move(op));
  }
  for (const auto& [producer, consumer] : std::vector<std::pair<OpId, OpId>>{{0, 5}, {1, 5}, {2, 5}, {5, 6}, {3, 7}})
    builder.add_consumer(builder.add_tensor(producer, 0, 0.0), consumer);
  const Graph graph = std::move(builder).build();
  const Machine exact = test::machine_of({"a", "b", "c", "e"});
  const Machine varying = exact.with_jitter(0.1);
  const auto chosen = [&](const Machine& machine) {
    const Problem problem(graph, machine);
    return portfolio(problem, *usual_objective(problem), after_evaluations(4000)).placement.device_of_op[5];
  };
  EXPECT_EQ(chosen(exact), 1u);
  EXPECT_EQ(chosen(varying), 0u);
}

}  // namespace
}  // namespace doppler
