// What module_test.cpp asks a shared library that doppler/base/module.cpp was linked into.
#include "doppler/base/module.h"

extern "C" const char* directory_of_the_library() {
  static const std::string directory = doppler::library_directory();
  return directory.c_str();
}
