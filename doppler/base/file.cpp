#include "doppler/base/file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doppler/base/error.h"

namespace doppler {
namespace {

constexpr std::size_t kLargestFile = std::size_t{4} << 30;
constexpr std::string_view kTemporaryBegin = ".doppler.", kTemporaryEnd = ".tmp";

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }
  void reset(int fd) { fd_ = fd; }
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
  throw InputError(fmt::format("{}: cannot {} ({}); required {}", path, doing, std::strerror(errno), required));
}

void write_all(int fd, const std::string& path, std::string_view content) {
  if (!try_write(fd, content)) fail(path, "write", "space and permission to write");
}

// Returns a name beside `target` that nobody else has, most probably.
std::filesystem::path temporary_name(const std::filesystem::path& target) {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) number = static_cast<std::uint64_t>(::getpid());
  return target.parent_path() / fmt::format("{}{:016x}{}", kTemporaryBegin, number, kTemporaryEnd);
}

// Writes a file that has no name until it is whole, so that nothing is left of it whatever happens to the process. It
// takes the place of one that exists, and then its mode too, by way of a temporary name. Returns false where this
// cannot be done: some file systems have no files without a name.
bool write_without_name(const std::filesystem::path& target, const struct stat* existing, std::string_view content) {
  const std::filesystem::path directory = target.has_parent_path() ? target.parent_path() : ".";
  FileDescriptor file(::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
  if (file.get() < 0 || !try_write(file.get(), content)) return false;
  const std::string self = fmt::format("/proc/self/fd/{}", file.get());
  const auto give_name = [&](const std::filesystem::path& name) {
    return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (existing == nullptr) return give_name(target);
  ::fchmod(file.get(), existing->st_mode & 07777);
  const std::filesystem::path temporary = temporary_name(target);
  if (!give_name(temporary)) return false;
  if (std::rename(temporary.c_str(), target.c_str()) == 0) return true;
  ::unlink(temporary.c_str());
  return false;
}

// A new file beside `target`, which takes its place as a whole or not at all. `path` is what the user calls it.
class Replacement {
 public:
  // Nobody else's file is opened, nor a link followed: the name is new, or the next one is tried.
  Replacement(const std::string& path, std::filesystem::path target) : path_(path), target_(std::move(target)) {
    constexpr int kTries = 100;
    for (int i = 0; i < kTries && file_.get() < 0; ++i) {
      temporary_ = temporary_name(target_);
      file_.reset(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
      if (file_.get() < 0 && errno != EEXIST) break;
    }
    if (file_.get() < 0) fail(path, "write", "an existing directory with permission to write");
  }
  ~Replacement() {
    if (!renamed_) ::unlink(temporary_.c_str());
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  // Otherwise the mode is what the umask says. A file system without modes keeps its own.
  void set_mode(mode_t mode) { ::fchmod(file_.get(), mode); }
  void write(std::string_view content) {
    write_all(file_.get(), path_, content);
    if (!file_.close()) fail(path_, "write", "space on the disk");
    if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail(path_, "write", "a path that can be replaced");
    renamed_ = true;
  }

 private:
  std::string path_;
  std::filesystem::path target_, temporary_;
  FileDescriptor file_{-1};
  bool renamed_ = false;
};

// Returns where a path leads, through any links, whether or not there is a file yet. The links of /proc are names of
// open descriptors (/dev/stdout leads there) and are left as they are.
std::filesystem::path follow_links(const std::string& path) {
  constexpr int kMostLinks = 40;
  std::filesystem::path target = path;
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code none;
    const std::filesystem::path link = std::filesystem::read_symlink(target, none);
    const std::filesystem::path directory = std::filesystem::weakly_canonical(target.parent_path(), none);
    if (link.empty() || directory.native().starts_with("/proc/")) return target;
    target = target.parent_path() / link;
  }
  errno = ELOOP;
  fail(path, "write", "a link that leads somewhere");
}

bool find_status(const std::string& path, struct stat& status) {
  return (path == "-" ? ::fstat(STDIN_FILENO, &status) : ::stat(path.c_str(), &status)) == 0;
}

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
  if (path == "-") return write_all(STDOUT_FILENO, "standard output", content);
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  const bool special = exists && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
  // A pipe may have no name to follow a link to: >(command) of a shell is /dev/fd/63, a link to "pipe:[17]".
  const std::filesystem::path target = special ? std::filesystem::path(path) : follow_links(path);
  if (special || (exists && target.native().starts_with("/proc/"))) {
    // A pipe, /dev/null or an open descriptor: renaming over it would destroy it.
    FileDescriptor device(::open(target.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (device.get() < 0) fail(path, "write", "permission to write");
    return write_all(device.get(), path, content);
  }
  if (write_without_name(target, exists ? &status : nullptr, content)) return;
  Replacement replacement(path, target);
  if (exists) replacement.set_mode(status.st_mode & 07777);
  replacement.write(content);
}

bool is_temporary_file(std::string_view name) {
  return name.starts_with(kTemporaryBegin) && name.ends_with(kTemporaryEnd);
}

bool try_write(int descriptor, std::string_view content) noexcept {
  while (!content.empty()) {
    const ssize_t n = ::write(descriptor, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat of_a {
  }, of_b{};
  const bool a_exists = find_status(a, of_a), b_exists = find_status(b, of_b);
  // Of files that are not there yet the names decide, whichever way they are written.
  const auto name = [](const std::string& path) {
    std::error_code none;
    return std::filesystem::weakly_canonical(std::filesystem::absolute(follow_links(path), none), none);
  };
  if (!a_exists || !b_exists) return a_exists == b_exists && name(a) == name(b);
  return S_ISREG(of_a.st_mode) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

}  // namespace doppler
