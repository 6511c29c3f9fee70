#include "doppler/base/file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doppler/base/error.h"

namespace doppler {
namespace {

constexpr std::size_t kLargestFile = std::size_t{4} << 30;

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }
  // Closing can report a full disk; 0 and 1 belong to the process.
  bool close() {
    const int fd = fd_;
    fd_ = -1;
    return fd <= STDERR_FILENO || ::close(fd) == 0;
  }

 private:
  int fd_;
};

[[noreturn]] void fail(const std::string& path, const char* doing, const char* required) {
  throw InputError(
      fmt::format("{}: cannot {} ({}); required {}", path, doing, std::strerror(errno), required));
}

void write_all(int fd, const std::string& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(path, "write", "space and permission to write");
    content.remove_prefix(static_cast<std::size_t>(n));
  }
}

// Removes the temporary file unless it was renamed.
struct TemporaryFile {
  std::string path;
  bool keep = false;
  ~TemporaryFile() {
    if (!keep) ::unlink(path.c_str());
  }
};

}  // namespace

std::string read_file(const std::string& path) {
  FileDescriptor file(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail(path, "open", "a readable file");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(path, "read", "a readable file");
  if (S_ISDIR(status.st_mode)) throw InputError(fmt::format("{}: is a directory; required a file", path));
  std::string content;
  if (S_ISREG(status.st_mode) && static_cast<std::size_t>(status.st_size) <= kLargestFile)
    content.reserve(static_cast<std::size_t>(status.st_size));
  char buffer[1 << 16];
  while (true) {
    const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "read", "a readable file");
    if (n == 0) return content;
    content.append(buffer, static_cast<std::size_t>(n));
    if (content.size() > kLargestFile)
      throw InputError(fmt::format("{}: larger than 4 GiB; required a smaller file", path));
  }
}

void write_file_atomically(const std::string& path, std::string_view content) {
  if (path == "-") return write_all(STDOUT_FILENO, path, content);
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    // A pipe or /dev/null: renaming over it would destroy it.
    FileDescriptor device(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (device.get() < 0) fail(path, "write", "permission to write");
    return write_all(device.get(), path, content);
  }
  TemporaryFile temporary{fmt::format("{}.{}.tmp", path, ::getpid())};
  FileDescriptor file(::open(temporary.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) fail(path, "write", "an existing directory with permission to write");
  write_all(file.get(), path, content);
  if (!file.close()) fail(path, "write", "space on the disk");
  if (std::rename(temporary.path.c_str(), path.c_str()) != 0)
    fail(path, "write", "a path that can be replaced");
  temporary.keep = true;
}

}  // namespace doppler
