#pragma once

#include <cstdint>

namespace doppler {

// How long the calling thread could have run but waited for a core that another thread had: what the kernel counts as
// time on the run queue. To be used by one thread.
class RunQueueClock {
 public:
  RunQueueClock();
  ~RunQueueClock();
  RunQueueClock(const RunQueueClock&) = delete;
  RunQueueClock& operator=(const RunQueueClock&) = delete;

  // Returns the nanoseconds since the thread began; 0 where the kernel does not tell. Takes about a microsecond.
  std::uint64_t waited() const;

 private:
  int file_;
};

}  // namespace doppler
