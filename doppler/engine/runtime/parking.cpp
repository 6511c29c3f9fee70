#include "doppler/engine/runtime/parking.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace doppler {

void Parking::sleep_while_parked(std::atomic<std::uint32_t>& parked, std::int64_t nanoseconds) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  timespec limit{.tv_sec = nanoseconds / kSecond, .tv_nsec = nanoseconds % kSecond};
  syscall(SYS_futex, &parked, FUTEX_WAIT_PRIVATE, 1, nanoseconds == kForever ? nullptr : &limit, nullptr, 0);
}

void Parking::rouse(std::atomic<std::uint32_t>& parked) {
  syscall(SYS_futex, &parked, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace doppler
