#include "doppler/base/pin_thread.h"

#include <algorithm>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

namespace doppler {

unsigned usable_cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  return static_cast<unsigned>(std::max(CPU_COUNT(&allowed), 1));
}

void pin_thread(unsigned index) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;  // then it stays where the system puts it
  unsigned skip = index % static_cast<unsigned>(std::max(CPU_COUNT(&allowed), 1));
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || skip-- > 0) continue;
    CPU_SET(core, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    return;
  }
}

void sleep_precisely() { prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

}  // namespace doppler
