#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "doppler/units.h"

namespace doppler {

// A library of others that is opened on demand and never closed.
class SharedLibrary {
 public:
  struct Description {
    std::string name;
    std::vector<std::string> files;  // the first that opens counts
    std::string package;             // what to install
    Bytes bytes = 0;                 // what its code and tables take, about
  };
  // Throws InputError if it is not installed, OutOfMemory if it does not fit.
  explicit SharedLibrary(Description description);

  // Returns a function of it or of what it was loaded with. Throws InputError if there is none of that name.
  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(address(name));
  }

 private:
  void* address(const char* name) const;

  Description description_;
  void* handle_ = nullptr;
};

// Returns whether so many bytes could be mapped now, for libraries that do not notice if they get none.
bool has_room(std::size_t bytes);

}  // namespace doppler
