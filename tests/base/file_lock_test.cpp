#include "doppler/base/file_lock.h"

#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "doppler/base/error.h"

namespace doppler {
namespace {

class AFileLock : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_ =
      (std::filesystem::temp_directory_path() / fmt::format("doppler_lock_test_{}", ::getpid())).string();
};

TEST_F(AFileLock, NamesWhoHoldsIt) {
  const FileLock lock("run", path_);
  try {
    const FileLock second("run", path_);
    FAIL() << "two hold it";
  } catch (const InputError& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with(fmt::format("run: in use by process {} on ", ::getpid()))) << text;
    EXPECT_NE(text.find(" since 20"), std::string::npos) << text;
  }
}

TEST_F(AFileLock, IsFreeAgainWhenItsOwnerLetsGoOrDies) {
  { const FileLock lock("run", path_); }
  if (const pid_t child = ::fork(); child == 0) {
    const FileLock lock("run", path_);
    ::_exit(0);  // without its destructor
  } else {
    int status = 1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  EXPECT_NO_THROW(FileLock("run", path_));
}

TEST_F(AFileLock, FollowsNoLink) {
  std::filesystem::create_symlink("/dev/null", path_);
  EXPECT_THROW(FileLock("run", path_), InputError);
}

}  // namespace
}  // namespace doppler
