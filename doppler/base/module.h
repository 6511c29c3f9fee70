#pragma once

#include <filesystem>
#include <string_view>

namespace doppler {

// A part of the program that is opened on demand, because its libraries take long to load, and never closed.
struct Module {
  std::string_view name;      // of the file, without ".so"
  std::string_view wanted;    // the flag that needs it
  std::string_view required;  // what has it
};
// The function `symbol` of the module, which lies in `directory` or in ../lib/doppler from there. Throws InputError if
// it does not.
void* open_module(const Module& module, const std::filesystem::path& directory, const char* symbol);
// Where the running program lies, and with it usually the modules.
std::filesystem::path executable_directory();

}  // namespace doppler
