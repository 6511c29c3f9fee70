#pragma once

namespace doppler {

// Keeps the calling thread on the `index`-th of the cores that the process may use; round and round if there are fewer.
void pin_thread(unsigned index);
// Cores that the process may use.
unsigned usable_cores();
// Sleeps of the calling thread end on time instead of up to 50 µs late (Linux groups timers to save power).
void sleep_precisely();

}  // namespace doppler
