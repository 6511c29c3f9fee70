#include "doppler/place/search/search_state.h"

#include <gtest/gtest.h>

#include "doppler/graph/generate.h"
#include "tests/support/problems.h"

namespace doppler {
namespace {

using test::rules_of;

Graph blocks() {
  ChainOfBlocksOptions options;
  options.ops = 120;
  return generate_chain_of_blocks(options);
}

bool is_topological(const Graph& graph, std::span<const std::uint32_t> rank) {
  for (OpId op = 0; op < graph.op_count(); ++op)
    for (const TensorId tensor : graph.inputs(op))
      if (rank[graph.producer(tensor)] >= rank[op]) return false;
  return true;
}

Placement all_on_first(const Problem& problem) {
  Placement placement;
  placement.device_of_op.resize(problem.op_count());
  for (OpId op = 0; op < problem.op_count(); ++op) placement.device_of_op[op] = problem.devices(op).front();
  return placement;
}

TEST(ASearchState, KeepsATopologicalOrderAndUndoesEveryMove) {
  const Problem world(blocks(), load_machine("p100x4"), rules_of(Discipline::ordered), {{5, 2}});
  SearchState state(world, true);
  state.assign(all_on_first(world));
  Rng rng(1);
  int moves = 0, reordered = 0;
  for (int step = 0; step < 5000; ++step) {
    const std::vector<DeviceId> devices(state.device_of_op().begin(), state.device_of_op().end());
    const std::vector<OpId> order(state.order().begin(), state.order().end());
    const bool moved = state.move(rng);
    ASSERT_TRUE(is_topological(world.graph(), state.rank()));
    ASSERT_EQ(state.device_of_op()[5], 2u) << "a pinned op moved";
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      ASSERT_EQ(state.rank()[state.order()[i]], i);
      const bool same = state.order()[i] == order[i] && state.device_of_op()[order[i]] == devices[order[i]];
      ASSERT_TRUE(same || (moved && state.first_touched() <= i && i <= state.last_touched())) << "position " << i;
    }
    reordered += !std::equal(order.begin(), order.end(), state.order().begin());
    moves += moved;
    if (moved && step % 2 == 0) {
      state.undo();
      ASSERT_TRUE(std::equal(devices.begin(), devices.end(), state.device_of_op().begin()));
      ASSERT_TRUE(std::equal(order.begin(), order.end(), state.order().begin()));
    }
  }
  EXPECT_GT(moves, 2000);
  EXPECT_GT(reordered, 500);
}

TEST(ASearchState, MovesUnitsAsAWholeAndWithinParameterMemory) {
  // Six ops of 10 B in three groups, 40 B per device: at most two groups share one.
  GraphBuilder builder("test");
  for (int i = 0; i < 6; ++i) {
    OpSpec op;
    op.explicit_times["*"] = 1;
    op.parameter_bytes = 10;
    op.group = std::to_string(i % 3);
    builder.add_op(op);
  }
  const Problem world(std::move(builder).build(), test::machine_of({"gpu", "gpu", "gpu"}, 40));
  SearchState state(world, false);
  Placement start;
  start.device_of_op = {0, 1, 2, 0, 1, 2};
  state.assign(start);
  Rng rng(2);
  int moves = 0;
  for (int step = 0; step < 1000; ++step) {
    moves += state.move(rng);
    std::vector<Bytes> used(3, 0);
    for (OpId op = 0; op < 6; ++op) {
      ASSERT_EQ(state.device_of_op()[op], state.device_of_op()[op % 3]);
      used[state.device_of_op()[op]] += 10;
    }
    for (const Bytes bytes : used) ASSERT_LE(bytes, 40u);
  }
  EXPECT_GT(moves, 100);
}

TEST(ASearchState, MovesOpsInFocusMoreOften) {
  const Problem world(blocks(), load_machine("p100x4"));
  SearchState state(world, false);
  state.assign(all_on_first(world));
  const std::vector<OpId> focus = {3, 70};
  const auto moved_of = [&](OpId op) {
    Rng rng(4);
    int count = 0;
    for (int step = 0; step < 4000; ++step) {
      const DeviceId before = state.device_of_op()[op];
      if (!state.move(rng)) continue;
      count += state.device_of_op()[op] != before ? 1 : 0;
      state.undo();
    }
    return count;
  };
  const int before = moved_of(3);
  state.focus(focus, 0.5);
  EXPECT_GT(moved_of(3), 3 * before);
  state.focus({}, 0);
  EXPECT_EQ(moved_of(3), before);
}

TEST(ASearchState, MakesAnyOrderTopological) {
  const Problem world(blocks(), load_machine("p100x4"));
  SearchState state(world, true);
  Placement placement = all_on_first(world);
  std::vector<double> keys;
  Rng rng(3);
  for (OpId op = 0; op < world.graph().op_count(); ++op) keys.push_back(rng.uniform());
  placement.priority = ranks_of(keys);
  ASSERT_FALSE(is_topological(world.graph(), placement.priority));
  state.assign(placement);
  EXPECT_TRUE(is_topological(world.graph(), state.rank()));
}

}  // namespace
}  // namespace doppler
