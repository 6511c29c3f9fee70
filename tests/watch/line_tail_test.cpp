#include "doppler/watch/line_tail.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace doppler {
namespace {

class ALineTail : public testing::Test {
 protected:
  ~ALineTail() override { std::filesystem::remove(path_); }
  void append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }

  std::string path_ = testing::TempDir() + "line_tail_test.jsonl";
};

using Lines = std::vector<std::string>;

TEST_F(ALineTail, GivesWhatIsThereThenWhatComesAndWaitsForTheEndOfALine) {
  LineTail tail(path_);
  EXPECT_EQ(tail.next(), Lines{}) << "there is no file yet";
  append("one\ntwo\nth");
  EXPECT_EQ(tail.next(), (Lines{"one", "two"}));
  EXPECT_EQ(tail.next(), Lines{});
  append("ree\n");
  EXPECT_EQ(tail.next(), Lines{"three"});
}

TEST_F(ALineTail, BeginsAnewWithAFileThatBecameShorter) {
  LineTail tail(path_);
  append("a long line\n");
  EXPECT_EQ(tail.next(), Lines{"a long line"});
  std::ofstream(path_, std::ios::trunc) << "new\n";
  EXPECT_EQ(tail.next(), Lines{"new"});
}

}  // namespace
}  // namespace doppler
