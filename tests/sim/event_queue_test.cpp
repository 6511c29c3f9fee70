#include "doppler/sim/event_queue.h"

#include <set>

#include <gtest/gtest.h>

#include "doppler/base/rng.h"
#include "doppler/sim/rank_set.h"

namespace doppler {
namespace {

// Against std::set, with enough entries at a time to pass through the far heap, and with equal times.
TEST(AnEventQueue, ReturnsEntriesByTimeThenId) {
  for (const std::uint32_t width : {3u, 100u, 5000u}) {
    EventQueue queue(100'000);
    std::set<std::pair<Seconds, std::uint32_t>> expected;
    Rng rng(width);
    Seconds now = 0;
    for (std::uint32_t id = 0; id < 50'000; ++id) {
      const Seconds time = now + rng.below(20);
      queue.push(time, id, id + 7);
      expected.emplace(time, id);
      ASSERT_EQ(queue.top_time(), expected.begin()->first);
      ASSERT_EQ(queue.top_id(), expected.begin()->second);
      while (expected.size() > width || (!expected.empty() && rng.below(3) == 0)) {
        const EventQueue::Entry entry = queue.pop();
        ASSERT_EQ(std::pair(entry.time, entry.id), *expected.begin());
        ASSERT_EQ(entry.payload, entry.id + 7);
        expected.erase(expected.begin());
        now = entry.time;
      }
    }
    for (const auto& [time, id] : expected) ASSERT_EQ(queue.pop().id, id);
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.top_time(), std::numeric_limits<Seconds>::infinity());
  }
}

TEST(ARankSet, ReturnsTheSmallest) {
  for (const std::uint32_t n : {1u, 64u, 65u, 4096u, 20'000u}) {
    RankSet ranks(n);
    std::set<std::uint32_t> expected;
    Rng rng(n);
    for (int step = 0; step < 20'000; ++step) {
      const std::uint32_t rank = rng.below(n);
      if (expected.insert(rank).second) ranks.insert(rank);
      if (rng.below(2) == 0) {
        ASSERT_EQ(ranks.pop_smallest(), *expected.begin());
        expected.erase(expected.begin());
      }
      ASSERT_EQ(ranks.empty(), expected.empty());
    }
  }
}

}  // namespace
}  // namespace doppler
