#include "doppler/report/timelines.h"

#include <functional>

#include <gtest/gtest.h>

#include "doppler/errors.h"
#include "doppler/report.h"

namespace doppler {
namespace {

// Two devices, a tick a second: a from 0 to 2 on gpu0, its tensor until 3, b from 3 to 4 on gpu1; all on the chain.
Schedule two_bars() {
  Schedule schedule;
  schedule.makespan = 4, schedule.tick = 1;
  schedule.devices = {{.name = "gpu0"}, {.name = "gpu1"}};
  schedule.kinds = {"add", "matmul"};
  schedule.ops.name = {"a", "b, \"<last>\""};
  schedule.ops.kind = {1, 0};
  schedule.ops.device = {0, 1};
  schedule.ops.slot = {0, 0};
  schedule.ops.start = {0, 3};
  schedule.ops.takes = {2, 1};
  schedule.ops.waited = {0, 0};
  schedule.transfers = {
      .producer = {0}, .src = {0}, .dst = {1}, .later = {2}, .takes = {1}, .waited = {0}, .bytes = {8}};
  schedule.chain = {.transfer = {0, 1}, .id = {0, 0}, .waits = {0, 0}};
  return schedule;
}

TEST(ATimelineAsText, HasALetterPerColumnByKindAndCapitalsOnTheChain) {
  // Eight columns of half a second. matmul takes longest and is 'a'; the chain has op a alone; add is 'b'.
  EXPECT_EQ(timeline_to_text(two_bars(), 8),
            "  gpu0  |AAAA....|\n"
            "  gpu1  |......bb|\n"
            "         0    4 s\n"
            "\n  a matmul  b add  . idle  CAPITALS the critical chain\n");
}

TEST(ATimelineAsText, ShowsWhatTakesMostOfAColumn) {
  // Two columns of two seconds: a fills the first; b is half of the second, which is enough not to be idle.
  EXPECT_NE(timeline_to_text(two_bars(), 2).find("gpu0  |A.|\n  gpu1  |.b|"), std::string::npos);
}

TEST(ATimelineAsCsv, HasARowPerOpAndTransferAndQuotesNames) {
  EXPECT_EQ(timeline_to_csv(two_bars()),
            "what,name,kind,device,slot,from,bytes,ready,start,end\n"
            "op,a,matmul,gpu0,0,,,0,0,2\n"
            "op,\"b, \"\"<last>\"\"\",add,gpu1,0,,,3,3,4\n"
            "transfer,a,,gpu1,,gpu0,8,2,2,3\n");
}

TEST(ATimelineAsSvg, PutsTimelinesOnOneAxisAndEscapesNames) {
  Schedule half = two_bars();
  half.makespan = 2, half.tick = 0.5;
  const Schedule whole = two_bars();
  const std::string picture = timelines_to_svg({{"<before>", &whole}, {"after", &half}});
  EXPECT_NE(picture.find("&lt;before&gt;: 4 s"), std::string::npos);
  EXPECT_NE(picture.find("after: 2 s"), std::string::npos);
  // The plot is 852 pixels wide from 96 on: the end of the first is at 948, of the second, half as long, at 522.
  EXPECT_NE(picture.find("M948.0 "), std::string::npos);
  EXPECT_NE(picture.find("M522.0 "), std::string::npos);
}

TEST(ATimelineAsSvg, StaysSmallWhateverTheNumberOfOps) {
  Schedule many = two_bars();
  many.ops = {}, many.transfers = {}, many.chain = {};
  constexpr std::uint32_t kOps = 100'000;
  for (std::uint32_t op = 0; op < kOps; ++op) {
    many.ops.name.emplace_back("op");
    many.ops.kind.push_back(op % 2);
    many.ops.device.push_back(0);
    many.ops.slot.push_back(0);
    many.ops.start.push_back(op);
    many.ops.takes.push_back(1);
    many.ops.waited.push_back(0);
  }
  many.makespan = kOps;
  EXPECT_LT(timelines_to_svg({{"many", &many}}).size(), 100'000u);  // 852 pixels of at most some 40 bytes per bar
}

TEST(ADamagedSchedule, IsRefusedWhenItIsRead) {
  const auto damaged = [](const std::function<void(Schedule&)>& damage) {
    SimulationResult result;
    result.schedule = two_bars();
    result.schedule->ops.input_begin = {0, 0, 1}, result.schedule->ops.input = {0};
    result.schedule->waits = {"data"};
    damage(*result.schedule);
    return to_json(result);
  };
  EXPECT_NO_THROW(parse_result("x.json", damaged([](Schedule&) {})));
  const std::vector<std::function<void(Schedule&)>> damages = {[](Schedule& s) { s.ops.slot[0] = 4'000'000'000; },
                                                               [](Schedule& s) { s.ops.kind[1] = 2; },
                                                               [](Schedule& s) { s.ops.device[0] = 2; },
                                                               [](Schedule& s) { s.chain.id[0] = 2; },
                                                               [](Schedule& s) { s.transfers.producer[0] = 2; },
                                                               [](Schedule& s) { s.transfers.dst[0] = 2; },
                                                               [](Schedule& s) { s.ops.takes.pop_back(); },
                                                               [](Schedule& s) { s.transfers.bytes.clear(); },
                                                               [](Schedule& s) { s.devices[0].slots = 4'000'000'000; },
                                                               [](Schedule& s) { s.tick = 0; },
                                                               [](Schedule& s) { s.ops.input[0] = 9; },
                                                               [](Schedule& s) { s.chain.waits[1] = 1; }};
  for (std::size_t i = 0; i < damages.size(); ++i)
    EXPECT_THROW(parse_result("x.json", damaged(damages[i])), InputError) << "damage " << i;
}

TEST(AResultWithoutATimeline, IsRefusedByItsName) {
  try {
    picture_svg({{"x.json", Comparison{}}});
    FAIL() << "was drawn";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "x.json: no timeline; required the result of place, simulate or run, written with --timeline");
  }
}

}  // namespace
}  // namespace doppler
