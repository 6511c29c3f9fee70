#include "doppler/analyse/chain.h"

#include <gtest/gtest.h>

#include "doppler/why.h"
#include "tests/support/problems.h"

namespace doppler {
namespace {

using Waits = ChainStep::Waits;

std::vector<Waits> waits_of(const std::vector<ChainStep>& chain) {
  std::vector<Waits> waits;
  for (const ChainStep& step : chain) waits.push_back(step.waits);
  return waits;
}

TEST(AChain, NamesTheTransferBetweenTwoDevices) {
  // 3 on device 0, 2 on the way, 4 on device 1: 9 in all.
  const Problem problem(test::graph_of({3, 4}, {{0, 1, 2}}), uniform_machine(2));
  const Placement placement{.device_of_op = {0, 1}};
  const Timeline run = test::simulate(problem, placement);
  EXPECT_EQ(run.makespan, 9);
  const std::vector<ChainStep> chain = critical_chain(problem, run);
  ASSERT_EQ(chain.size(), 3u);
  EXPECT_EQ(waits_of(chain), (std::vector{Waits::nothing, Waits::data, Waits::transfer}));
  EXPECT_TRUE(chain[1].is_transfer);
  EXPECT_EQ(chain[1].start, 3);
  EXPECT_EQ(chain[1].end, 5);
}

TEST(AChain, NamesTheDeviceThatIsBusy) {
  // Both are ready at 0 on one device; the second begins when the first has ended.
  const Problem problem(test::graph_of({3, 4}, {}), uniform_machine(1));
  const std::vector<ChainStep> chain = critical_chain(problem, test::simulate(problem, {.device_of_op = {0, 0}}));
  EXPECT_EQ(waits_of(chain), (std::vector{Waits::nothing, Waits::device}));
}

TEST(AChain, NamesTheLinkThatIsBusy) {
  // Ops 0 and 1 end at 1 and 2 on device 0; their tensors take 5 each over one channel: 1 to 6, then 6 to 11. Op 3 reads
  // the second and takes 1: 12. The chain is op 0, its tensor, the tensor that waits for it, op 3.
  const Problem problem(test::graph_of({1, 1, 1, 1}, {{0, 2, 5}, {1, 3, 5}}), uniform_machine(2),
                        {.links = Links::channels});
  const Timeline run = test::simulate(problem, {.device_of_op = {0, 0, 1, 1}});
  EXPECT_EQ(run.makespan, 12);
  EXPECT_EQ(waits_of(critical_chain(problem, run)),
            (std::vector{Waits::nothing, Waits::data, Waits::channel, Waits::transfer}));
}

TEST(AChain, CoversTheMakespanOfAnyPlacement) {
  // 40 ops in a ladder, dealt out to three devices: every part of the run is explained, or the chain says it idles.
  std::vector<test::Edge> edges;
  for (OpId op = 2; op < 40; ++op) edges.push_back({op - 2, op, 1.5});
  const Problem problem(test::graph_of(std::vector<Seconds>(40, 1), edges), uniform_machine(3));
  Placement placement;
  for (OpId op = 0; op < 40; ++op) placement.device_of_op.push_back(op * 7 % 3);
  const Timeline run = test::simulate(problem, placement);
  Seconds covered = 0, at = 0;
  for (const ChainStep& step : critical_chain(problem, run)) {
    EXPECT_GE(step.start, at);
    covered += step.end - step.start + (step.start - at);
    at = step.end;
  }
  EXPECT_DOUBLE_EQ(covered, run.makespan);
}

TEST(Why, SaysWhatEveryOtherDeviceWouldCost) {
  // As above: 9. With op 1 beside op 0 it is 7.
  const Problem problem(test::graph_of({3, 4}, {{0, 1, 2}}), uniform_machine(2));
  const WhyResult answer = why(problem, {.device_of_op = {0, 1}}, {.names = {"op1"}});
  EXPECT_EQ(answer.makespan, 9);
  EXPECT_EQ(answer.chain_compute, 7);
  EXPECT_EQ(answer.chain_transfer, 2);
  EXPECT_EQ(answer.limit, "links");
  ASSERT_EQ(answer.units.size(), 1u);
  ASSERT_EQ(answer.units[0].elsewhere.size(), 1u);
  EXPECT_EQ(answer.units[0].elsewhere[0].makespan, 7);
  ASSERT_FALSE(answer.help.empty());
  EXPECT_EQ(answer.help[0].makespan, 7);
  EXPECT_THROW(why(problem, {.device_of_op = {0, 1}}, {.names = {"nothing"}}), std::exception);
}

TEST(Why, CausesAreSimulated) {
  // Op 1 is worse beside nobody; op 2 is alone and does as well anywhere.
  const Problem problem(test::graph_of({3, 4, 1}, {{0, 1, 2}}), uniform_machine(3));
  const std::vector<Cause> causes = simulated_causes(problem, {.device_of_op = {0, 0, 1}});
  EXPECT_EQ(causes, (std::vector{Cause::makespan, Cause::makespan, Cause::indifferent}));
}

TEST(Diff, SaysWhatEachMoveIsWorthByItself) {
  const Problem problem(test::graph_of({3, 4}, {{0, 1, 2}}), uniform_machine(2));
  const DiffResult answer = diff(problem, {.device_of_op = {0, 1}}, {.device_of_op = {0, 0}});
  EXPECT_EQ(answer.a.makespan, 9);
  EXPECT_EQ(answer.b.makespan, 7);
  EXPECT_EQ(answer.a.chain_transfer, 2);
  ASSERT_EQ(answer.moved.size(), 1u);
  EXPECT_EQ(answer.moved[0].name, "op1");
  EXPECT_EQ(answer.moved[0].alone, 7);
}

}  // namespace
}  // namespace doppler
