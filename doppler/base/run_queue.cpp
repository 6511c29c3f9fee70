#include "doppler/base/run_queue.h"

#include <charconv>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace doppler {

RunQueueClock::RunQueueClock() : file_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
RunQueueClock::~RunQueueClock() {
  if (file_ >= 0) ::close(file_);
}

std::uint64_t RunQueueClock::waited() const {
  char buffer[96];  // time on a core, time on the run queue, time slices
  const ssize_t size = file_ < 0 ? 0 : ::pread(file_, buffer, sizeof buffer, 0);
  const std::string_view text(buffer, size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::size_t space = text.find(' ');
  std::uint64_t value = 0;
  if (space != text.npos) std::from_chars(text.data() + space + 1, text.data() + text.size(), value);
  return value;
}

}  // namespace doppler
