#include "doppler/base/module.h"

#include <dlfcn.h>
#include <fstream>
#include <unistd.h>

#include <gtest/gtest.h>

#include "doppler/base/error.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;

const fs::path kAnswer = DOPPLER_TEST_MODULE;          // build tree: …/modules/module_answer.so
const fs::path kLibrary = DOPPLER_TEST_MODULE_INSIDE;  // build tree: …/elsewhere/module_inside.so

constexpr Module kModule{"module_answer", "--answer", "a test"};

// A directory tree with one copy of the module.
class AModule : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "module_test_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    fs::create_directories(root_ / "here");
  }
  void TearDown() override { fs::remove_all(root_); }

  int answer_with_module_in(const fs::path& place) {
    fs::create_directories(root_ / place);
    fs::copy(kAnswer, root_ / place / "module_answer.so");
    return reinterpret_cast<int (*)()>(open_module(kModule, root_ / "here", "module_answer"))();
  }

  fs::path root_;
};

TEST_F(AModule, IsFoundBesideTheLibrary) { EXPECT_EQ(answer_with_module_in("here"), 42); }
TEST_F(AModule, IsFoundInAnInstallation) { EXPECT_EQ(answer_with_module_in("lib/doppler"), 42); }
// Debian's libraries are in lib/x86_64-linux-gnu, the modules in lib/doppler.
TEST_F(AModule, IsFoundBesideADirectoryOfLibraries) { EXPECT_EQ(answer_with_module_in("doppler"), 42); }
TEST_F(AModule, IsFoundInABuildTree) { EXPECT_EQ(answer_with_module_in("bin"), 42); }

TEST_F(AModule, ThatIsMissingIsAnErrorThatSaysWhereItWasSoughtAndWhatHasIt) {
  try {
    open_module(kModule, root_ / "here", "module_answer");
    FAIL() << "opened a module that is not there";
  } catch (const InputError& error) {
    const auto at = [&](const char* place) { return (root_ / place / "module_answer.so").string(); };
    EXPECT_EQ(error.what(), "--answer: found no module_answer module at '" + at("here") + "' or '" + at("lib/doppler") +
                                "' or '" + at("doppler") + "' or '" + at("bin") + "'; required a test");
  }
}

TEST_F(AModule, ThatIsNoSharedLibraryIsAnError) {
  std::ofstream(root_ / "here" / "module_answer.so") << "text";
  EXPECT_THROW(open_module(kModule, root_ / "here", "module_answer"), InputError);
}

TEST_F(AModule, OfAnotherBuildIsAnError) {
  fs::copy(kAnswer, root_ / "here" / "module_answer.so");
  EXPECT_THROW(open_module(kModule, root_ / "here", "another_answer"), InputError);
}

TEST(TheLibrary, LiesWhereTheProgramLiesThatItIsLinkedInto) {
  EXPECT_EQ(library_directory(), fs::read_symlink("/proc/self/exe").parent_path());
}

TEST(TheLibrary, LiesWhereTheSharedLibraryLiesThatItIsLinkedInto) {
  void* const opened = dlopen(kLibrary.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(opened, nullptr) << dlerror();
  const auto directory = reinterpret_cast<const char* (*)()>(dlsym(opened, "directory_of_the_library"));
  ASSERT_NE(directory, nullptr);
  EXPECT_EQ(directory(), fs::canonical(kLibrary).parent_path());
  EXPECT_NE(directory(), library_directory());
}

}  // namespace
}  // namespace doppler
