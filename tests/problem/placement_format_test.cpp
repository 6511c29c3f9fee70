#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/placement.h"

namespace doppler {
namespace {

std::string error_of(const std::string& text) {
  try {
    check_size("p", parse_placement("p", text).placement, 4, 2);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(APlacementFile, GivesDevicesAndRanksOfPriorities) {
  // Priorities 0, 1.5, -3, 2: op 2 is first, then ops 0, 1 and 3.
  const std::string path = std::string(DOPPLER_TEST_DATA) + "/good/placement.json";
  const Placement placement = parse_placement(path, read_file(path)).placement;
  EXPECT_EQ(placement.device_of_op, (std::vector<DeviceId>{0, 0, 1, 0}));
  EXPECT_EQ(placement.priority, (std::vector<std::uint32_t>{1, 2, 0, 3}));
}

TEST(APlacementFile, IsReadAsItWasWritten) {
  const Placement placement{{1, 0, 1, 1}, {3, 0, 1, 2}, {Cause::pinned, Cause::search, Cause::search, Cause::memory}};
  Provenance made;
  made.method = "heft";
  made.machine = "p100x4";
  made.links = "channels";
  made.makespan = 1.5;
  made.seed = 7;
  const PlacementFile file = parse_placement("p", placement_to_json(placement, made));
  EXPECT_EQ(file.placement, placement);
  EXPECT_EQ(file.made.method, "heft");
  EXPECT_EQ(file.made.machine, "p100x4");
  EXPECT_EQ(file.made.links, "channels");
  EXPECT_EQ(file.made.makespan, 1.5);
  EXPECT_EQ(file.made.seed, 7u);
}

TEST(APlacementFile, IsRefusedIfItIsNone) {
  EXPECT_EQ(error_of(R"({"format":"doppler-graph"})"),
            "p: no \"format\": \"doppler-placement\"; required a placement file");
  EXPECT_EQ(error_of(R"({"format":"doppler-placement","version":1,"assignment":[0,1]})"),
            "p: 'assignment' has 2 entries; required 4, one per op");
  EXPECT_EQ(error_of(R"({"format":"doppler-placement","version":1,"assignment":[0,1,2,0]})"),
            "p: op 2 is assigned to device 2; required a device below 2");
  EXPECT_EQ(error_of(R"({"format":"doppler-placement","version":1,"assignment":[0,-1,1,0]})"),
            "p: op 1 is assigned to device -1; required the number of a device");
  EXPECT_EQ(error_of(R"({"format":"doppler-placement","version":1,"assignment":[0,1,1,0],"priority":[]})"),
            "p: 'priority' has 0 entries; required 4, one per op");
  EXPECT_EQ(error_of(R"({"format":"doppler-placement","version":1,"assignment":[0,1,1,0],"causes":["search"]})"),
            "p: 'causes' has 1 entries; required 4, one per op");
}

TEST(APlacementFile, MayNotNestDeeply) {
  // Copying or printing such a value would exhaust the stack.
  for (const char* start : {"{\"format\":", "{\"format\":\"doppler-placement\",\"version\":",
                            "{\"format\":\"doppler-placement\",\"version\":1,\"assignment\":["})
    EXPECT_EQ(error_of(start + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}"),
              "p: nested more than 64 levels deep; required fewer");
}

}  // namespace
}  // namespace doppler
