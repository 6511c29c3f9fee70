#pragma once

#include <functional>

namespace doppler {

// Calls task(0) … task(count - 1), each once, on up to `threads` threads (the caller is one of them), and
// waits. The first exception stops tasks that have not begun and is rethrown here.
void parallel_for(unsigned count, unsigned threads, const std::function<void(unsigned)>& task);

}  // namespace doppler
