#include "doppler/report/text.h"

#include <gtest/gtest.h>

#include "tests/report/fixture.h"

namespace doppler {
namespace {

TEST(ADeviceTable, CountsUseAndTraffic) {
  const std::vector<DeviceUse> uses = device_uses(two_op_timeline(), uniform_machine(2));
  EXPECT_EQ(uses[0].ops, 1u);
  EXPECT_DOUBLE_EQ(uses[0].utilisation, 0.5);   // 2 of 4
  EXPECT_DOUBLE_EQ(uses[1].utilisation, 0.25);  // 1 of 4
  const Traffic moved = traffic(two_op_timeline(), two_op_graph());
  EXPECT_EQ(moved.transfers, 1u);
  EXPECT_EQ(moved.bytes, 8u);
}

TEST(ADeviceTable, DividesUtilisationByTheSlots) {
  Device device;
  device.name = "a";
  device.type = "cpu";
  device.slots = 4;
  Timeline timeline;
  timeline.makespan = 10;
  timeline.busy = {20};
  EXPECT_DOUBLE_EQ(device_uses(timeline, Machine("m", {device}, {Link()}))[0].utilisation,
                   0.5);  // 20 / (4 × 10)
}

TEST(ADeviceTable, DrawsWhenEachDeviceWasBusy) {
  // 40 parts of 0.1: device 0 is busy in the first 20, device 1 in the last 10.
  EXPECT_EQ(device_table(device_uses(two_op_timeline(), uniform_machine(2, 1024))),
            "  device   ops    busy  peak memory     of  activity\n"
            "  device0    1  50.0 %          8 B  1 KiB  |####################                    |\n"
            "  device1    1  25.0 %          8 B  1 KiB  |                              ##########|\n");
}

TEST(ADeviceTable, ShowsShortOpsAsPartlyBusy) {
  Timeline timeline;
  timeline.makespan = 40;  // parts of 1
  timeline.executions = {{.op = 0, .device = 0, .slot = 0, .ready = 0, .start = 0, .end = 0.25},
                         {.op = 1, .device = 0, .slot = 0, .ready = 0, .start = 1, .end = 1.5},
                         {.op = 2, .device = 0, .slot = 0, .ready = 0, .start = 2, .end = 2.75},
                         {.op = 3, .device = 0, .slot = 0, .ready = 0, .start = 3, .end = 40}};
  timeline.busy = {38.5};
  timeline.peak_memory = {0};
  EXPECT_NE(device_table(device_uses(timeline, uniform_machine(1))).find("|.-=##"), std::string::npos);
}

TEST(ADeviceTable, OfAnEmptyRunDividesByNothing) {
  Timeline timeline;
  timeline.executions = {{.op = 0, .device = 0, .slot = 0, .ready = 0, .start = 0, .end = 0}};
  timeline.busy = {0};
  timeline.peak_memory = {0};
  EXPECT_EQ(device_uses(timeline, uniform_machine(1))[0].utilisation, 0.0);
  EXPECT_NE(device_table(device_uses(timeline, uniform_machine(1))).find("0.0 %"), std::string::npos);
}

TEST(ATime, IsShownWithAUnitOnlyIfTheGraphHasOne) {
  EXPECT_EQ(format_time(0.0015, false), "1.5 ms");
  EXPECT_EQ(format_time(1667215834021, true), "1667215834021");
  EXPECT_EQ(format_time(166.7215834, true), "166.722");
}

}  // namespace
}  // namespace doppler
