#include "doppler/base/parallel.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace doppler {

void parallel_for(unsigned count, unsigned threads, const std::function<void(unsigned)>& task) {
  std::atomic<unsigned> next = 0;
  std::mutex mutex;
  std::exception_ptr first_error;
  const auto work = [&] {
    for (unsigned i = next++; i < count; i = next++) {
      try {
        task(i);
      } catch (...) {
        next = count;
        const std::lock_guard lock(mutex);
        if (!first_error) first_error = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (unsigned i = 1; i < threads && i < count; ++i) helpers.emplace_back(work);
    } catch (const std::system_error&) {
      // No more threads are to be had; fewer do the same.
    }
    work();
  }  // joins
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace doppler
