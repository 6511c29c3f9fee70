#include "doppler/report/trace.h"

#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/report/fixture.h"

namespace doppler {
namespace {

using nlohmann::json;

std::vector<json> events_of_phase(const json& trace, const std::string& phase) {
  std::vector<json> found;
  for (const json& event : trace.at("traceEvents"))
    if (event.at("ph") == phase) found.push_back(event);
  return found;
}

TEST(ATrace, HasASlicePerExecutionAndPerTransfer) {
  const json trace = json::parse(timeline_to_trace(two_op_timeline(), two_op_problem()));
  const std::vector<json> slices = events_of_phase(trace, "X");
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices[0].at("name"), "a");
  EXPECT_EQ(slices[0].at("dur"), 2e6);  // 2 s in µs
  EXPECT_EQ(slices[0].at("args").at("kind"), "matmul");
  EXPECT_EQ(slices[1].at("name"), "b\"\n");
  EXPECT_EQ(slices[1].at("pid"), 1);
  EXPECT_EQ(slices[2].at("cat"), "transfer");
  EXPECT_EQ(slices[2].at("ts"), 2e6);
  EXPECT_EQ(slices[2].at("pid"), 1);  // shown on the device that receives
  EXPECT_EQ(slices[2].at("tid"), 1);  // after its single slot
  EXPECT_EQ(slices[2].at("args").at("bytes"), 8);
}

TEST(ATrace, DrawsArrowsFromProducerToTransferToConsumer) {
  const json trace = json::parse(timeline_to_trace(two_op_timeline(), two_op_problem()));
  const std::vector<json> starts = events_of_phase(trace, "s"), ends = events_of_phase(trace, "f");
  ASSERT_EQ(starts.size(), 2u);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(starts[0].at("pid"), 0);
  EXPECT_EQ(ends[0].at("tid"), 1);  // the transfer
  EXPECT_EQ(ends[1].at("tid"), 0);  // b
  EXPECT_EQ(starts[0].at("id"), ends[0].at("id"));
  EXPECT_NE(starts[0].at("id"), starts[1].at("id"));
}

TEST(ATrace, PutsOverlappingTransfersOnLanesOfTheirOwn) {
  Timeline timeline = two_op_timeline();
  const Timeline::Transfer first = timeline.transfers[0];  // 2 to 3
  timeline.transfers = {first, first, first};
  timeline.transfers[1].start = 2.5, timeline.transfers[1].end = 3.5;  // overlaps the first
  timeline.transfers[2].start = 3.0, timeline.transfers[2].end = 3.2;  // takes the first lane again
  const json trace = json::parse(timeline_to_trace(timeline, two_op_problem()));
  std::vector<int> threads;
  for (const json& event : events_of_phase(trace, "X"))
    if (event.at("cat") == "transfer") threads.push_back(event.at("tid"));
  EXPECT_EQ(threads, (std::vector<int>{1, 2, 1}));
}

TEST(ATrace, NamesDevicesSlotsAndLinks) {
  const json trace = json::parse(timeline_to_trace(two_op_timeline(), two_op_problem()));
  std::map<std::string, int> names;
  for (const json& event : events_of_phase(trace, "M"))
    if (event.at("args").contains("name")) ++names[event.at("args").at("name")];
  EXPECT_EQ(names, (std::map<std::string, int>{{"device0", 1}, {"device1", 1}, {"slot 0", 2}, {"from device0", 1}}));
}

TEST(ATrace, CountsMemoryOverTime) {
  const json trace = json::parse(timeline_to_trace(two_op_timeline(), two_op_problem()));
  // a's 8 bytes are taken on device 0 at its start; the copy on device 1 with the transfer at 2 s.
  std::vector<std::pair<int, double>> steps;
  for (const json& event : events_of_phase(trace, "C")) {
    EXPECT_EQ(event.at("name"), "memory");
    if (event.at("args").at("bytes") == 8) steps.emplace_back(event.at("pid"), event.at("ts"));
  }
  EXPECT_EQ(steps, (std::vector<std::pair<int, double>>{{0, 0.0}, {1, 2e6}}));
}

}  // namespace
}  // namespace doppler
