#include "doppler/sim/ordered_evaluator.h"

#include <gtest/gtest.h>

#include "doppler/base/rng.h"
#include "doppler/sim/simulator.h"
#include "tests/support/problems.h"

namespace doppler {
namespace {

using test::rules_of;

// Ops with random integer times (some 0), each reading a few earlier ones: every order by id is topological.
Graph random_graph(OpId ops, Rng& rng) {
  std::vector<Seconds> times;
  std::vector<test::Edge> edges;
  for (OpId op = 0; op < ops; ++op) {
    times.push_back(rng.below(6));
    for (OpId from = op > 8 ? op - 8 : 0; from < op; ++from)
      if (rng.below(4) == 0) edges.push_back({from, op, static_cast<Seconds>(rng.below(9))});
  }
  return test::graph_of(times, edges);
}

// Changes some devices and, by exchanging neighbours in the order that do not depend on each other, the
// order.
class ALocalSearch {
 public:
  ALocalSearch(const Problem& world, Rng& rng) : world_(world), rng_(rng) {
    for (OpId op = 0; op < world.graph().op_count(); ++op) {
      device_of_op.push_back(rng.below(world.machine().device_count()));
      order.push_back(op);
    }
    rank = ranks_from_order(order);
  }
  void change() {
    first = world_.graph().op_count();
    last = 0;
    for (std::uint32_t count = rng_.below(3); count > 0; --count) {
      const OpId op = rng_.below(world_.graph().op_count());
      device_of_op[op] = rng_.below(world_.machine().device_count());
      touch(rank[op]);
    }
    const std::uint32_t position = rng_.below(world_.graph().op_count() - 1);
    if (!reads(order[position + 1], order[position])) {
      std::swap(order[position], order[position + 1]);
      rank = ranks_from_order(order);
      touch(position);
      touch(position + 1);
    }
    if (first > last) touch(position);
  }

  std::vector<DeviceId> device_of_op;
  std::vector<OpId> order;
  std::vector<std::uint32_t> rank;
  std::uint32_t first = 0, last = 0;

 private:
  void touch(std::uint32_t position) {
    first = std::min(first, position);
    last = std::max(last, position);
  }
  bool reads(OpId consumer, OpId producer) const {
    for (const TensorId tensor : world_.graph().inputs(consumer))
      if (world_.graph().producer(tensor) == producer) return true;
    return false;
  }
  const Problem& world_;
  Rng& rng_;
};

void expect_equal_to_the_simulator(const Problem& world, Rng& rng) {
  Simulator simulator(world);
  OrderedEvaluator evaluator(world);
  ALocalSearch search(world, rng);
  Seconds current = evaluator.reset(search.device_of_op, search.order, search.rank);
  ASSERT_EQ(current, simulator.makespan(search.device_of_op, search.rank));
  int accepted = 0, refused = 0;
  for (int step = 0; step < 2000; ++step) {
    const ALocalSearch before = search;
    search.change();
    const Seconds expected = simulator.makespan(search.device_of_op, search.rank);
    const Seconds limit = current + rng.below(5) - 1;  // sometimes below what there is
    const Seconds found =
        evaluator.change(search.device_of_op, search.order, search.rank, search.first, search.last, limit);
    if (expected <= limit) {
      ASSERT_EQ(found, expected) << "step " << step;
      current = found;
      ++accepted;
    } else {
      ASSERT_EQ(found, std::numeric_limits<Seconds>::infinity()) << "step " << step;
      search.device_of_op = before.device_of_op;
      search.order = before.order;
      search.rank = before.rank;
      ++refused;
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 100);
}

TEST(AnOrderedEvaluator, AgreesWithTheSimulatorAfterEveryChange) {
  Rng rng(1);
  for (const OpId ops : {5u, 40u, 150u}) {
    const Problem uniform(random_graph(ops, rng), uniform_machine(3), rules_of(Discipline::ordered));
    expect_equal_to_the_simulator(uniform, rng);
  }
}

TEST(AnOrderedEvaluator, AgreesWithTheSimulatorOnUnequalLinks) {
  Rng rng(2);
  std::vector<Device> devices(3);
  for (std::size_t i = 0; i < 3; ++i) devices[i].name = "d" + std::to_string(i), devices[i].type = "gpu";
  std::vector<Link> links(9);
  links[1].cost_factor = 2;  // from the first to the second
  const Problem world(random_graph(60, rng), Machine("unequal", devices, links), rules_of(Discipline::ordered));
  ASSERT_EQ(world.costs().link_classes(), 2u);
  expect_equal_to_the_simulator(world, rng);
}

TEST(AnOrderedEvaluator, SupportsOnlyWhatItComputes) {
  Rng rng(3);
  const Graph graph = random_graph(5, rng);
  const Machine machine = uniform_machine(2);
  Rules rules;
  EXPECT_TRUE(OrderedEvaluator::supports(Problem(graph, machine, rules)));
  rules.links = Links::channels;
  EXPECT_FALSE(OrderedEvaluator::supports(Problem(graph, machine, rules)));
}

}  // namespace
}  // namespace doppler
