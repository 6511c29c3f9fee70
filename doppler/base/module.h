#pragma once

#include <filesystem>
#include <string_view>

namespace doppler {

// A part of the library that is opened on demand, because its own libraries take long to load, and never closed.
struct Module {
  std::string_view name;      // The name of its file, without ".so".
  std::string_view wanted;    // The flag that needs it.
  std::string_view required;  // What has it, and how to get that.
};
// Returns the function `symbol` of the module. The module is looked for in `directory` (an installed or built command,
// the package of an interpreter), then in ../lib/doppler or ../doppler (an installation) and ../bin (a build tree) from
// there. Throws InputError if it is in none of them.
void* open_module(const Module& module, const std::filesystem::path& directory, const char* symbol);
// Returns the directory of the file that holds this code: of the program, or of the shared library that this library
// was linked into. Modules are found from there, so that they are found inside another program too.
std::filesystem::path library_directory();

}  // namespace doppler
