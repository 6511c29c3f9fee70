#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace doppler {

// The lines of a file that others write: those that are there, then those that come. Half a line waits for its end. A
// file that became shorter was begun anew, and is read from its beginning.
class LineTail {
 public:
  explicit LineTail(std::string path) : path_(std::move(path)) {}

  // Returns the whole lines that have come since the last call, without their ends.
  std::vector<std::string> next();

 private:
  std::string path_, half_;
  std::uint64_t read_ = 0;
};

}  // namespace doppler
