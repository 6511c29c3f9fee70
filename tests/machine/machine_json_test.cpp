#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/machine.h"

namespace doppler {
namespace {

void expect_equal(const Machine& a, const Machine& b) {
  EXPECT_EQ(a.name(), b.name());
  EXPECT_EQ(a.link_model(), b.link_model());
  EXPECT_EQ(a.jitter(), b.jitter());
  EXPECT_EQ(a.emulation(), b.emulation());
  ASSERT_EQ(a.device_count(), b.device_count());
  for (DeviceId src = 0; src < a.device_count(); ++src) {
    EXPECT_EQ(a.device(src), b.device(src));
    for (DeviceId dst = 0; dst < a.device_count(); ++dst)
      EXPECT_TRUE(src == dst || a.link(src, dst) == b.link(src, dst)) << src << " " << dst;
  }
}

TEST(AMachineFile, ReadsBackWhatWasWritten) {
  for (const MachinePreset& preset : machine_presets()) {
    const Machine machine = preset.make();
    expect_equal(parse_machine("test", machine_to_json(machine)), machine);
  }
  expect_equal(parse_machine("test", machine_to_json(uniform_machine(1, 5))), uniform_machine(1, 5));
  const Machine p100s = load_machine("p100x4");
  const Machine copies("copies", {p100s.device(0), p100s.device(1)}, std::vector<Link>(4), Links::receiver, 0.125);
  expect_equal(parse_machine("test", machine_to_json(copies)), copies);
  Jitter fitted = 0.03;
  fitted.transfers = 0;
  fitted.kinds = {{"matmul", 0.02}, {"add", 0.4}};
  fitted.tail = {.probability = 0.004, .factor = 2.5};
  const Machine calibrated = p100s.with_jitter(fitted).with_emulation(Emulation{4e-6, 9e-6, fitted});
  expect_equal(parse_machine("test", machine_to_json(calibrated)), calibrated);
}

TEST(AMachineFile, WritesTheSameSigmaEverywhereAsANumber) {
  EXPECT_NE(machine_to_json(uniform_machine(2).with_jitter(0.125)).find("\"jitter\": 0.125"), std::string::npos);
  EXPECT_EQ(machine_to_json(uniform_machine(2)).find("jitter"), std::string::npos);
}

TEST(AMachineFile, GivesTransfersTheSigmaOfOpsUnlessItSaysOtherwise) {
  const std::string text = R"({"format": "doppler-machine", "version": 1, "jitter": {"sigma": 0.25},
                               "devices": [{"name": "a", "type": "gpu"}]})";
  EXPECT_EQ(parse_machine("m.json", text).jitter(), Jitter(0.25));
}

TEST(AMachineFile, RefusesALinkModelThatDoesNotExist) {
  const std::string text = R"({"format": "doppler-machine", "version": 1, "links": {"model": "pigeons"},
                               "devices": [{"name": "a", "type": "gpu"}]})";
  try {
    parse_machine("m.json", text);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "m.json: links: 'model' is \"pigeons\"; required \"free\", \"channels\", \"receiver\" or \"shared\"");
  }
}

TEST(AMachineFile, SaysOnceWhatAllLinksHaveInCommon) {
  const std::string text = machine_to_json(load_machine("p100x4"));
  EXPECT_NE(text.find("\"pairs\": []"), std::string::npos) << text;
}

TEST(AMachineFile, MayCountEqualDevicesAndChangeSingleLinks) {
  const Machine machine = load_machine(DOPPLER_TEST_DATA "/good/machine.json");
  EXPECT_EQ(machine.name(), "box");
  ASSERT_EQ(machine.device_count(), 3u);
  EXPECT_EQ(machine.device(0).slots, 4u);
  EXPECT_EQ(machine.device(2).name, "gpu1");
  EXPECT_EQ(machine.device(2).memory, gibibytes(2));
  EXPECT_EQ(machine.device(2).rates, (std::vector<Rate>{{"*", "*", 1e12}, {"matmul", "f16", 8e12}}));
  EXPECT_EQ(machine.link(0, 1), (Link{1e-5, 1e10, 2, 1}));
  EXPECT_EQ(machine.link(1, 2), (Link{1e-5, 5e10, 2, 1}));
  EXPECT_EQ(machine.link(2, 1), (Link{1e-5, 5e10, 2, 1}));
  EXPECT_EQ(machine.link(0, 2), (Link{3e-5, 1e10, 2, 1}));
  EXPECT_EQ(machine.link(2, 0), (Link{1e-5, 1e10, 2, 1}));
}

// File name under tests/data/bad_machine, and what follows the path in the message.
const std::map<std::string, std::string> kDefects = {
    {"deep_nesting", ": nested more than 64 levels deep; required fewer"},
    {"devices_not_an_array", R"(: 'devices' is {"gpu0":{}}; required an array)"},
    {"device_without_type", ": devices[0]: no 'type'; required a string"},
    {"emulation_of_more_than_the_overhead",
     ": emulation: overhead is 1.5e-05; required at most that of device 'gpu0', 1e-05"},
    {"emulation_of_more_than_the_latency",
     ": emulation: latency is 1e-06; required at most that of the link 'gpu0' to 'gpu1', 0"},
    {"emulation_with_unknown_key",
     ": emulation: unknown key \"slots\"; required one of 'overhead', 'latency', 'jitter'"},
    {"emulation_of_negative_jitter", ": emulation: jitter: found -1; required between 0 and 3"},
    {"fractional_slots", ": devices[0]: 'slots' is 1.5; required a whole number, at least 1"},
    {"future_version", ": 'version' is 2; required 1"},
    {"huge_number", "required numbers that a double can hold"},
    {"jitter_not_a_number", ": 'jitter' is \"some\"; required a number or an object"},
    {"jitter_without_sigma", ": jitter: no 'sigma'; required a number"},
    {"jitter_with_unknown_key",
     ": jitter: unknown key \"mean\"; required one of 'sigma', 'transfers', 'kinds', 'tail'"},
    {"jitter_kinds_not_an_array", R"(: jitter: 'kinds' is {"matmul":0.1}; required an array)"},
    {"jitter_of_one_kind_twice", ": jitter: two sigmas for kind 'matmul'; required one"},
    {"jitter_of_a_kind_negative", ": jitter of kind 'matmul': found -0.1; required between 0 and 3"},
    {"jitter_of_transfers_of_many_sigmas", ": jitter of transfers: found 5; required between 0 and 3"},
    {"jitter_tail_without_factor", ": jitter: tail: no 'factor'; required a number"},
    {"jitter_tail_that_is_no_tail", ": probability of jitter's tail: found 0.9; required between 0 and 0.5"},
    {"jitter_tail_of_short_times", ": factor of jitter's tail: found 0.5; required between 1 and 1000000"},
    {"jitter_of_many_sigmas", ": jitter: found 4; required between 0 and 3"},
    {"link_between_three", R"(: links: pairs[0]: 'between' is ["gpu0","gpu1","gpu2"]; required two device names)"},
    {"link_to_itself", ": links: pairs[0]: from 'gpu0' to itself; required two different devices"},
    {"link_to_missing_device", ": links: pairs[0]: no device 'gpu7'; required the name of one of the 2 devices"},
    {"link_with_two_directions", ": links: pairs[0]: 'between' and 'from'/'to'; required one or the other"},
    {"memory_of_unknown_unit", ": devices[0]: 'memory': found '16 gigs'; required a size such as 600MB or 16GiB"},
    {"name_not_a_string", ": devices[0]: 'name' is 7; required a string"},
    {"negative_jitter", ": jitter: found -0.1; required between 0 and 3"},
    {"negative_latency", ": link 'gpu0' to 'gpu1': latency is -1; required a finite number, not negative"},
    {"negative_memory", ": devices[0]: 'memory' is -1; required a whole number of bytes between 0 and 1e+18"},
    {"negative_overhead", ": device 'gpu0': overhead is -1e-06; required a finite number, not negative"},
    {"no_devices", ": 0 devices; required 1 to 1024"},
    {"no_format", ": no 'format'; required \"doppler-machine\""},
    {"no_version", ": no 'version'; required 1"},
    {"repeated_key", ": key \"version\" twice in one object; required each key once"},
    {"rate_without_value", ": devices[0]: rates[0]: no 'flops_per_second'; required a number"},
    {"too_many_devices", ": 1025 devices; required 1 to 1024"},
    {"truncated", ": not JSON ("},
    {"two_devices_of_one_name", ": two devices are named 'gpu0'; required unique names"},
    {"two_rates_of_one_kind", ": device 'gpu0': two rates for kind '*', dtype '*'; required one"},
    {"unknown_device_key", ": devices[0]: unknown key \"flops\"; required one of 'name', 'count', "},
    {"unknown_key",
     ": unknown key \"colour\"; required one of 'format', 'version', 'name', 'jitter', 'devices', 'links', "
     "'emulation'"},
    {"unknown_link_key",
     ": links: default: unknown key \"bandwidth\"; required one of 'latency', 'bytes_per_second', "},
    {"zero_channels", ": links: default: 'channels' is 0; required a whole number, at least 1"},
    {"zero_count", ": devices[0]: 'count' is 0; required a whole number, at least 1"},
    {"zero_rate", ": device 'gpu0': rate for kind '*', dtype '*' is 0; required above 0 and finite"},
    {"zero_slots", ": devices[0]: 'slots' is 0; required a whole number, at least 1"},
};

TEST(AMachineFile, IsRefusedWithAMessageThatNamesItsDefect) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DOPPLER_TEST_DATA "/bad_machine")) {
    ++files;
    const std::string path = entry.path().string();
    const auto expected = kDefects.find(entry.path().stem().string());
    ASSERT_NE(expected, kDefects.end()) << path;
    try {
      load_machine(path);
      ADD_FAILURE() << path << " was accepted";
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).rfind(path, 0), 0u) << error.what();
      EXPECT_NE(std::string(error.what()).find(expected->second), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(files, kDefects.size());
}

}  // namespace
}  // namespace doppler
