#include "doppler/base/mapped_file.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "doppler/base/error.h"

namespace doppler {

MappedFile::MappedFile(const std::string& path, const std::string& where) {
  const auto refuse = [&](const char* problem) {
    throw InputError(fmt::format("{}: {}; required a file that can be read", where, problem));
  };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) refuse(std::strerror(errno));
  struct stat status {};
  const bool regular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  if (regular) {
    size_ = static_cast<std::size_t>(status.st_size);
    if (size_ > 0) data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
  }
  const int error = errno;
  close(file);
  if (!regular) refuse("not a file");
  if (data_ == MAP_FAILED) refuse(std::strerror(error));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr && data_ != MAP_FAILED) munmap(data_, size_);
}

void forget_pages(const void* begin, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t from = (reinterpret_cast<std::uintptr_t>(begin) + page - 1) / page * page;
  const std::uintptr_t to = (reinterpret_cast<std::uintptr_t>(begin) + bytes) / page * page;
  if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace doppler
