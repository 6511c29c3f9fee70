#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/base/file.h"
#include "doppler/graph/formats/read_graph.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;

const std::string kExpected = ".expected";

std::vector<std::string> bad_files() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(DOPPLER_TEST_DATA) / "bad"))
    if (entry.path().extension() != kExpected) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

std::string error_of(const std::string& where, std::string_view content) {
  try {
    parse_graph(where, content);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// Every file under tests/data/bad is named by its one defect; beside it stands the text that a user must see.
class ABadFile : public testing::TestWithParam<std::string> {};

TEST_P(ABadFile, IsRefusedWithItsMessage) {
  const std::string path = (fs::path(DOPPLER_TEST_DATA) / "bad" / GetParam()).string();
  ASSERT_TRUE(fs::exists(path + kExpected)) << "write the expected message into " << path << kExpected;
  EXPECT_EQ(error_of(GetParam(), read_file(path)) + "\n", read_file(path + kExpected));
}

INSTANTIATE_TEST_SUITE_P(Files, ABadFile, testing::ValuesIn(bad_files()), test_name);

TEST(BadFiles, HaveNoExpectationWithoutAFile) {
  for (const auto& entry : fs::directory_iterator(fs::path(DOPPLER_TEST_DATA) / "bad")) {
    const bool orphan = entry.path().extension() == kExpected && !fs::exists(fs::path(entry.path()).replace_extension());
    EXPECT_FALSE(orphan) << entry.path();
  }
}

TEST(DeepNesting, IsRefusedInEveryJsonFormat) {
  const std::string deep(1'000'000, '[');
  for (const char* start :
       {"{\"format\":", "{\"format\":\"doppler-graph\",\"version\":1,\"ops\":[{\"times\":", "{\"workflow\":",
        "{\"nodes\":"})
    EXPECT_EQ(error_of("deep", start + deep), "deep: nested more than 64 levels deep; required fewer")
        << start;
  std::string objects = "{\"format\":";
  for (int i = 0; i < 1'000'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(error_of("deep", objects), "deep: nested more than 64 levels deep; required fewer");
}

TEST(LongGarbage, IsQuotedInShort) {
  const std::string word(1'000'000, 'x');
  EXPECT_LT(error_of("long", "3\n0,\n" + word).size(), 200u);
  EXPECT_LT(error_of("long", "{\"format\":\"doppler-graph\",\"ops\":[{\"" + word + "\":1}]}").size(), 300u);
  EXPECT_LT(error_of("long", "{\"format\":\"" + word).size(), 300u);
  EXPECT_LT(error_of("long", "{\"format\":1e" + std::string(1'000'000, '9') + "}").size(), 300u);
}

}  // namespace
}  // namespace doppler
