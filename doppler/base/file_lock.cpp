#include "doppler/base/file_lock.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "doppler/base/error.h"
#include "doppler/base/file.h"

namespace doppler {
namespace {

std::string this_process() {
  char host[256] = {}, since[64] = {};
  ::gethostname(host, sizeof host - 1);
  const std::time_t now = std::time(nullptr);
  struct tm parts {};
  std::strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S UTC", ::gmtime_r(&now, &parts));
  return fmt::format("process {} on {} since {}", ::getpid(), host, since);
}

std::string owner_in(int file) {
  char text[512] = {};
  const ssize_t bytes = ::pread(file, text, sizeof text - 1, 0);
  const std::string owner(text, bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  return owner.empty() ? "another process" : owner.substr(0, owner.find('\n'));
}

}  // namespace

FileLock::FileLock(const std::string& what, const std::string& path)
    : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)) {
  if (file_ < 0)
    throw InputError(
        fmt::format("{}: cannot open '{}' ({}); required a directory to write to", what, path, std::strerror(errno)));
  if (::flock(file_, LOCK_EX | LOCK_NB) == 0) {
    if (::ftruncate(file_, 0) == 0) try_write(file_, this_process() + "\n");
    return;
  }
  const int error = errno;
  const std::string owner = owner_in(file_);
  ::close(file_);
  if (error != EWOULDBLOCK)
    throw InputError(
        fmt::format("{}: cannot lock '{}' ({}); required a file system with locks", what, path, std::strerror(error)));
  throw InputError(fmt::format("{}: in use by {}; required another directory, or that it ends", what, owner));
}

FileLock::~FileLock() { ::close(file_); }

}  // namespace doppler
