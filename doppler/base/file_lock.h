#pragma once

#include <string>

namespace doppler {

// A file that one process at a time holds, for as long as this object lives; the system lets go of it when the process
// ends, however it ends. The file says who holds it and stays behind.
class FileLock {
 public:
  // Throws InputError if another process holds it, naming that, or if there can be no such file. `what` is what the
  // lock is for, as errors begin.
  FileLock(const std::string& what, const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

}  // namespace doppler
