#include "doppler/machine.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "doppler/base/error.h"

namespace doppler {
namespace {

Device device(std::string name) {
  Device result;
  result.name = std::move(name);
  result.type = "gpu";
  return result;
}

void expect_refused(std::vector<Device> devices, const Link& link, const std::string& message) {
  const std::size_t n = devices.size();
  try {
    Machine("m", std::move(devices), std::vector<Link>(n * n, link));
    FAIL() << "accepted; expected: " << message;
  } catch (const InputError& error) {
    EXPECT_EQ(error.what(), message);
  }
}

TEST(AMachine, RefusesDevicesThatMakeNoSense) {
  expect_refused({}, {}, "machine 'm': 0 devices; required 1 to 1024");
  expect_refused({device("a"), device("a")}, {}, "machine 'm': two devices are named 'a'; required unique names");
  expect_refused({device("")}, {}, "machine 'm': a device has no name; required one");
  Device broken = device("a");
  broken.slots = 0;
  expect_refused({broken}, {}, "machine 'm': device 'a': slots is 0; required between 1 and 4096");
  broken = device("a");
  broken.overhead = -1;
  expect_refused({broken}, {}, "machine 'm': device 'a': overhead is -1; required a finite number, not negative");
  broken = device("a");
  broken.rates = {{"*", "*", std::nan("")}};
  expect_refused({broken}, {},
                 "machine 'm': device 'a': rate for kind '*', dtype '*' is nan; required above 0 and finite");
}

TEST(AMachine, RefusesLinksThatMakeNoSense) {
  const std::vector<Device> two = {device("a"), device("b")};
  Link link;
  link.latency = std::numeric_limits<double>::infinity();
  expect_refused(two, link, "machine 'm': link 'a' to 'b': latency is inf; required a finite number, not negative");
  link = Link();
  link.channels = 0;
  expect_refused(two, link, "machine 'm': link 'a' to 'b': channels is 0; required between 1 and 4096");
}

TEST(AMachine, FindsDevicesByNameAndByIndex) {
  const Machine machine = load_machine("cpu+gpu");
  EXPECT_EQ(machine.device_by_name("gpu0"), 1u);
  EXPECT_EQ(machine.device_by_name("1"), 1u);
  for (const char* name : {"gpu1", "2", "-1", "", "0x0", "99999999999999999999"})
    EXPECT_THROW(machine.device_by_name(name), InputError) << name;
}

TEST(AMachine, PrefersANameToAnIndex) {
  const Machine machine("m", {device("1"), device("0")}, std::vector<Link>(4));
  EXPECT_EQ(machine.device_by_name("1"), 0u);
}

TEST(AUniformMachine, HasEqualDevicesOfTheGivenMemory) {
  const Machine machine = load_machine("uniform:3:600MiB");
  ASSERT_EQ(machine.device_count(), 3u);
  for (DeviceId id = 0; id < 3; ++id) EXPECT_EQ(machine.device(id).memory, Bytes{600} << 20);
  EXPECT_EQ(machine.link(0, 2).bytes_per_second, 1e9);
  EXPECT_EQ(machine.link(0, 2).cost_factor, 1.0);
  EXPECT_EQ(load_machine("uniform:4").device(3).memory, 0u);
  EXPECT_EQ(load_machine("uniform:1024").device_count(), 1024u);
}

TEST(AUniformMachine, IsNamedSoThatTheNameLoadsItAgain) {
  const Machine machine = load_machine("uniform:2:16GiB");
  EXPECT_EQ(load_machine(machine.name()).device(0).memory, gibibytes(16));
}

TEST(AUniformMachine, IsRefusedWithoutASensibleNumberOfDevices) {
  for (const char* name : {"uniform:", "uniform:0", "uniform:-1", "uniform:4x", "uniform:1025",
                           "uniform:4:", "uniform:4:lots", "uniform:99999999999999999999"})
    EXPECT_THROW(load_machine(name), InputError) << name;
}

TEST(APreset, LoadsByItsNameAndIsComplete) {
  for (const MachinePreset& preset : machine_presets()) {
    const Machine machine = load_machine(std::string(preset.name));
    EXPECT_EQ(machine.name(), preset.name);
    for (DeviceId id = 0; id < machine.device_count(); ++id) {
      EXPECT_FALSE(machine.device(id).rates.empty()) << preset.name;
      EXPECT_GT(machine.device(id).memory, 0u) << preset.name;
      EXPECT_GT(machine.device(id).memory_bytes_per_second, 0.0) << preset.name;
    }
  }
  EXPECT_EQ(load_machine("p100x4").device_count(), 4u);
  EXPECT_EQ(load_machine("v100x8").device_count(), 8u);
  EXPECT_EQ(load_machine("p100x4").jitter(), Jitter(0.05));
  EXPECT_EQ(load_machine("uniform:4").jitter(), Jitter());
}

TEST(TheV100Preset, GivesEveryGpuSixNvlinksOfADgx1) {
  const Machine machine = load_machine("v100x8");
  const double one_link = machine.link(0, 1).bytes_per_second;  // GPU 0 and 1 share a single NVLink
  for (DeviceId src = 0; src < 8; ++src) {
    double nvlinks = 0;
    unsigned through_host = 0;
    for (DeviceId dst = 0; dst < 8; ++dst) {
      if (src == dst) continue;
      EXPECT_EQ(machine.link(src, dst), machine.link(dst, src));
      if (machine.link(src, dst).cost_factor == 2)
        ++through_host;
      else
        nvlinks += machine.link(src, dst).bytes_per_second / one_link;
    }
    EXPECT_EQ(nvlinks, 6.0);
    EXPECT_EQ(through_host, 3u);  // 7 peers: 3 in the quad, 1 partner, 3 others
  }
}

TEST(AMachineName, ThatIsNeitherPresetNorFileListsThePresets) {
  try {
    load_machine("p100x5");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "machine: p100x5: cannot open (No such file or directory); required a readable file, or one of "
        "p100x4, "
        "p100x8, v100x4, v100x8, a100x8, cpu2, cpu+gpu, cpu+igpu+gpu, uniform:N, KIND:N as 'doppler machines' lists "
        "them; did you mean 'p100x4', 'p100x8' or 'a100x8'?");
  }
}

}  // namespace
}  // namespace doppler
