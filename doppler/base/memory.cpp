#include "doppler/base/memory.h"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace doppler {
namespace {

Bytes page_bytes() { return static_cast<Bytes>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

// Allocates nothing, because there may be nothing left.
Bytes memory_in_use() {
  char text[64] = {};
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t bytes = ::read(file, text, sizeof text - 1);
  ::close(file);
  return bytes > 0 ? std::strtoull(text, nullptr, 10) * page_bytes() : 0;
}

Bytes memory_limit() {
  Bytes limit = static_cast<Bytes>(::sysconf(_SC_PHYS_PAGES)) * page_bytes();
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    struct rlimit found {};
    if (::getrlimit(resource, &found) == 0 && found.rlim_cur != RLIM_INFINITY)
      limit = std::min<Bytes>(limit, found.rlim_cur);
  }
  return limit;
}

}  // namespace doppler
