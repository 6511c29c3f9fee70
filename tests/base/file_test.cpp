#include "doppler/base/file.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "doppler/base/error.h"

namespace doppler {
namespace {

class AFile : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / ("doppler_file_test_" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path(const char* name) const { return (directory_ / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory_), {}));
  }
  std::filesystem::path directory_;
};

TEST_F(AFile, IsReplacedWholeAndLeavesNoTemporaryBehind) {
  write_file_atomically(path("a"), "first");
  write_file_atomically(path("a"), "second");
  EXPECT_EQ(read_file(path("a")), "second");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(AFile, ThatCannotBeWrittenIsAnInputErrorAndChangesNothing) {
  std::filesystem::create_directory(path("directory"));
  EXPECT_THROW(write_file_atomically(path("directory"), "x"), InputError);
  EXPECT_THROW(write_file_atomically(path("missing/a"), "x"), InputError);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(AFile, ThatIsADeviceIsWrittenInPlace) {
  write_file_atomically("/dev/null", "x");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(AFile, BehindALinkIsReplacedAndTheLinkStays) {
  write_file_atomically(path("real"), "old");
  std::filesystem::create_symlink("real", path("link"));
  std::filesystem::create_symlink(path("link"), path("second"));
  write_file_atomically(path("second"), "new");
  EXPECT_EQ(read_file(path("real")), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")) && std::filesystem::is_symlink(path("second")));
  std::filesystem::create_symlink("loop", path("loop"));
  EXPECT_THROW(write_file_atomically(path("loop"), "x"), InputError);
}

TEST_F(AFile, KeepsItsModeWhenItIsReplaced) {
  using std::filesystem::perms;
  write_file_atomically(path("a"), "old");
  std::filesystem::permissions(path("a"), perms::owner_read | perms::owner_write | perms::group_read);
  write_file_atomically(path("a"), "new");
  EXPECT_EQ(std::filesystem::status(path("a")).permissions(),
            perms::owner_read | perms::owner_write | perms::group_read);
}

TEST_F(AFile, IsTheSameByAnyNameAndNotByItsContent) {
  write_file_atomically(path("a"), "x");
  write_file_atomically(path("b"), "x");
  std::filesystem::create_symlink("a", path("link"));
  std::filesystem::create_hard_link(path("a"), path("hard"));
  std::filesystem::create_symlink("new", path("dangling"));
  EXPECT_TRUE(same_file(path("a"), path("link")));
  EXPECT_TRUE(same_file(path("hard"), path("link")));
  EXPECT_TRUE(same_file(path("dangling"), path("new")));
  EXPECT_FALSE(same_file(path("a"), path("b")));
  EXPECT_FALSE(same_file(path("a"), path("new")));
  EXPECT_FALSE(same_file("/dev/null", "/dev/null"));  // Nothing is lost there.
}

TEST_F(AFile, ThatCannotBeReadIsAnInputError) {
  EXPECT_THROW(read_file(path("missing")), InputError);
  EXPECT_THROW(read_file(directory_.string()), InputError);
}

}  // namespace
}  // namespace doppler
