#include "doppler/place/exact/exact.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/graph/formats/read_graph.h"
#include "doppler/graph/levels.h"
#include "doppler/place/exact/schedule_tree.h"
#include "tests/support/sanitized.h"
#include "tests/support/small_graphs.h"

namespace doppler {
namespace {

using namespace test;

constexpr Discipline kDisciplines[] = {Discipline::fifo, Discipline::priority, Discipline::ordered};

MethodOptions no_deadline() {
  MethodOptions options;
  options.budget = Budget::unlimited();
  return options;
}

Rules rules_with(Discipline discipline, Links links) {
  Rules rules = rules_of(discipline);
  rules.links = links;
  return rules;
}

// Solves the problem and expects the optimum with its proof.
void expect_optimum(const Problem& problem, const std::string& what) {
  const Seconds optimum = best_by_brute_force(problem);
  if (optimum == Costs::kNever) {
    EXPECT_THROW(test::run(exact, problem, no_deadline()), InfeasibleError) << what;
    return;
  }
  const Proposal proposal = test::run(exact, problem, no_deadline());
  verify(problem, proposal.placement);
  const Timeline timeline = Simulator(problem).simulate(proposal.placement);
  EXPECT_TRUE(timeline.feasible()) << what;
  ASSERT_EQ(timeline.makespan, optimum) << what;
  ASSERT_TRUE(proposal.proven_bound.has_value()) << what;
  ASSERT_EQ(*proposal.proven_bound, optimum) << what;
}

std::string label(int graph, const Rules& rules) {
  return fmt::format("graph {}, {}, {}", graph, to_string(rules.discipline), to_string(rules.links));
}

TEST(AnExactSearch, FindsTheOptimumOfRandomGraphs) {
  Rng rng(1);
  for (int i = 0; i < fewer_if_sanitized(150); ++i) {
    const bool wide = rng.below(2) == 0;
    const Graph graph = random_small_graph(rng, wide ? 5 : 6).build();
    const Machine machine = machine_of(std::vector<std::string>(wide ? 3 : 2, "a"));
    for (const Discipline discipline : kDisciplines)
      expect_optimum(Problem(graph, machine, rules_of(discipline)), label(i, rules_of(discipline)));
  }
}

// Local search finds most optima of tiny graphs, and would hide a tree that cuts too much.
TEST(AScheduleTree, FindsTheOptimumWithoutAFirstPlacement) {
  Rng rng(5);
  for (int i = 0; i < fewer_if_sanitized(100); ++i) {
    const bool wide = rng.below(2) == 0;
    const Graph graph = random_small_graph(rng, wide ? 5 : 6).build();
    const Machine machine = machine_of(std::vector<std::string>(wide ? 3 : 2, "a"), 0, 1 + rng.below(2));
    const Costs costs(graph, machine);
    Consequences nothing;
    nothing.head = nothing.tail = std::vector<Seconds>(graph.op_count(), 0.0);
    for (OpId op = 0; op < graph.op_count(); ++op) nothing.cluster.push_back(op);
    // With tails the tree cuts more, which must not be too much.
    Consequences tails = nothing;
    tails.tail = levels(graph, costs.fastest_times(), {}).bottom;
    for (OpId op = 0; op < graph.op_count(); ++op) tails.tail[op] -= costs.fastest(op);
    const MethodOptions options = no_deadline();
    for (const Discipline discipline : kDisciplines) {
      const Problem problem(graph, machine, rules_of(discipline));
      const Seconds optimum = best_by_brute_force(problem);
      for (const Consequences& known : {nothing, tails}) {
        ExactObjective objective(problem);
        SearchRecord record(objective, options);
        EXPECT_EQ(search_schedules(problem, known, record), optimum) << label(i, problem.rules());
        EXPECT_EQ(record.makespan(), optimum) << label(i, problem.rules());
      }
    }
  }
}

TEST(AnExactSearch, FindsTheOptimumWithSlotsSpeedsPinsGroupsAndChannels) {
  Rng rng(2);
  for (int i = 0; i < fewer_if_sanitized(150); ++i) {
    const MixedProblem mixed = random_mixed_problem(rng);
    for (const Discipline discipline : kDisciplines) {
      for (const Links links : {Links::free, Links::channels, Links::receiver})
        expect_optimum(Problem(mixed.graph, mixed.machine, rules_with(discipline, links), mixed.pins),
                       label(i, rules_with(discipline, links)));
    }
  }
}

TEST(AnExactSearch, StaysWithinMemory) {
  Rng rng(3);
  for (int i = 0; i < fewer_if_sanitized(100); ++i) {
    SmallGraph small = random_small_graph(rng, 5);
    for (int op = 0; op < 5; ++op) small.parameters.push_back(1 + rng.below(5));
    std::vector<Device> devices(2);
    for (Device& device : devices) {
      device.name = device.type = "a";
      device.memory = 6 + rng.below(6);  // sometimes too little for all
    }
    devices[1].name = "b";
    const Graph graph = small.build();
    const Machine machine("small", devices, std::vector<Link>(4));
    for (const Discipline discipline : kDisciplines)
      expect_optimum(Problem(graph, machine, rules_of(discipline)), label(i, rules_of(discipline)));
  }
}

TEST(AnExactSearch, FindsTheOptimumUnderPublishedTiesAndRandomQueues) {
  Rng rng(4);
  for (int i = 0; i < 100; ++i) {
    const Graph graph = random_small_graph(rng, 6).build();
    const Machine machine = machine_of({"a", "a"});
    Rules published;
    published.ties = Ties::published;
    expect_optimum(Problem(graph, machine, published), label(i, published));
    Rules random = rules_of(Discipline::random);
    random.seed = static_cast<std::uint64_t>(i);
    expect_optimum(Problem(graph, machine, random), label(i, random));
  }
}

TEST(AnExactSearch, WaitsWhereWaitingPays) {
  // Device 0 runs a (1) and then either the long c (10), which is ready at once, or b (2), which needs a
  // tensor of a two-op chain and feeds the long tail d (10). All are pinned. Work-conserving: c starts at 1,
  // b at 11, d ends at 23. Waiting for b's input from device 1 until 1 + 1: b ends at 4, d (device 1) at 14,
  // c at 14.
  const SmallGraph small{anywhere({1, 1, 2, 10, 10}), {{0, 1, 0}, {1, 2, 0}, {2, 4, 0}, {0, 3, 0}}};
  const Graph graph = small.build();
  const Machine machine = machine_of({"a", "a"});
  const std::vector<Pin> pins = {{0, 0}, {1, 1}, {2, 0}, {3, 0}, {4, 1}};
  const auto best = [&](Discipline discipline) {
    const Proposal proposal = test::run(exact, Problem(graph, machine, rules_of(discipline), pins), no_deadline());
    return *proposal.proven_bound;
  };
  EXPECT_EQ(best(Discipline::ordered), 14);
  EXPECT_EQ(best(Discipline::priority), 23);
  EXPECT_EQ(best(Discipline::fifo), 23);
}

// Layers of four ops, each reading two of the layer before: no bound is tight at once.
SmallGraph layered_graph(OpId ops, std::uint64_t seed) {
  Rng rng(seed);
  SmallGraph graph;
  for (OpId op = 0; op < ops; ++op) {
    graph.times.push_back({{"*", 1.0 + rng.below(20)}});
    if (op < 4) continue;
    const OpId first = op - op % 4 - 4, a = rng.below(4), b = (a + 1 + rng.below(3)) % 4;
    graph.edges.push_back({first + a, op, static_cast<Seconds>(rng.below(20))});
    graph.edges.push_back({first + b, op, static_cast<Seconds>(rng.below(20))});
  }
  return graph;
}

TEST(AnExactSearch, StopsWithinItsBudgetAndSaysWhatItProved) {
  const Graph graph = layered_graph(40, 1).build();
  const Machine machine = machine_of({"a", "a", "a"});
  for (const Discipline discipline : kDisciplines) {
    const Problem problem(graph, machine, rules_of(discipline));
    MethodOptions options;
    options.budget = Budget::for_evaluations(30'000);
    const Proposal proposal = test::run(exact, problem, options);
    const Seconds makespan = Simulator(problem).makespan(proposal.placement);
    EXPECT_LE(proposal.evaluations, 30'001u);
    EXPECT_GE(*proposal.proven_bound, lower_bound(problem).value);
    EXPECT_LE(*proposal.proven_bound, makespan);
    const Proposal again = test::run(exact, problem, options);
    EXPECT_EQ(again.placement, proposal.placement);
    EXPECT_EQ(again.proven_bound, proposal.proven_bound);
  }
}

TEST(AnExactSearch, StopsWhenInterrupted) {
  const Graph graph = layered_graph(40, 1).build();
  const Machine machine = machine_of({"a", "a", "a"});
  std::stop_source user;
  user.request_stop();
  MethodOptions options;
  options.budget = Budget::unlimited().until(user.get_token());
  const Problem problem(graph, machine, rules_of(Discipline::ordered));
  const Proposal proposal = test::run(exact, problem, options);
  verify(problem, proposal.placement);
  EXPECT_LT(proposal.evaluations, 1000u);
}

TEST(AnExactSearch, ProvesThePublishedChainOptimal) {
  const auto path = std::filesystem::path(DOPPLER_SHARED_DATA) / "doppler_graphs/chain_mm_112nodes.txt";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent; required the published graphs";
  const LoadedGraph loaded = read_graph(path);
  const Machine machine = uniform_machine(4);
  for (const Discipline discipline : kDisciplines) {
    const Problem problem(loaded.graph, machine, rules_of(discipline));
    // Known weakness: some seeds stop an op or two short of the perfect balance; their bound must still be right.
    int proofs = 0;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      MethodOptions options;
      options.budget = Budget::for_evaluations(200'000);
      options.seed = seed;
      const Proposal proposal = test::run(exact, problem, options);
      // All work on four devices without a gap: 4800.28e10 / 4.
      EXPECT_EQ(*proposal.proven_bound, 1200.07e10) << to_string(discipline);
      const Seconds makespan = Simulator(problem).makespan(proposal.placement);
      EXPECT_GE(makespan, 1200.07e10) << to_string(discipline);
      proofs += makespan == 1200.07e10;
    }
    EXPECT_GE(proofs, 2) << to_string(discipline);
  }
}

TEST(AnExactSearch, ClaimsNoBoundForAnotherObjective) {
  const Graph graph = layered_graph(8, 1).build();
  const Machine machine = machine_of({"a", "a"});
  const Problem problem(graph, machine);
  ExpectedObjective objective(problem, 0.2);
  EXPECT_FALSE(exact(problem, objective, no_deadline()).proven_bound.has_value());
}

}  // namespace
}  // namespace doppler
