#include "doppler/base/new_directory.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "doppler/base/error.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

NewDirectory::NewDirectory(std::string target, const MayReplace& may_replace) : target_(std::move(target)) {
  while (target_.size() > 1 && target_.ends_with('/')) target_.pop_back();
  std::error_code failed;
  const fs::file_status status = fs::status(target_, failed);
  if (fs::exists(status) && !fs::is_directory(status))
    throw InputError(fmt::format("{}: is a file; required a directory that is new or empty", target_));
  try {
    if (const auto names = fs::exists(status) ? names_in(target_) : std::vector<std::string>();
        !names.empty() && !may_replace(target_, names))
      throw InputError(fmt::format("{}: found '{}' and {} more in it; required a directory that is new or empty",
                                   target_, names.front(), names.size() - 1));
  } catch (const fs::filesystem_error& error) {
    throw InputError(fmt::format("{}: cannot read ({}); required a directory", target_, error.code().message()));
  }
  const fs::path parent = fs::path(target_).has_parent_path() ? fs::path(target_).parent_path() : fs::path(".");
  path_ = (parent / ".doppler.XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr)
    throw InputError(fmt::format("{}: cannot write ({}); required an existing directory with permission to write",
                                 target_, std::strerror(errno)));
  const mode_t mask = ::umask(0);  // mkdtemp() lets nobody else in; the command has one thread that makes files
  ::umask(mask);
  ::chmod(path_.c_str(), 0777 & ~mask);
}

NewDirectory::~NewDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

void NewDirectory::finish() {
  // Two names change places in one step, so that there is a directory at every moment; the old one then goes.
  const bool exists = ::access(target_.c_str(), F_OK) == 0;
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), exists ? RENAME_EXCHANGE : 0) != 0)
    throw InputError(
        fmt::format("{}: cannot write ({}); required a path that can be replaced", target_, std::strerror(errno)));
  if (!exists) path_.clear();
}

}  // namespace doppler
