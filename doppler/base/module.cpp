#include "doppler/base/module.h"

#include <dlfcn.h>
#include <link.h>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "doppler/base/error.h"

namespace doppler {

void* open_module(const Module& module, const std::filesystem::path& directory, const char* symbol) {
  const std::filesystem::path above = directory.parent_path();
  std::vector<std::filesystem::path> places = {directory, above / "lib" / "doppler", above / "doppler"};
  if (directory != above / "bin") places.push_back(above / "bin");
  std::string sought;
  for (const auto& place : places) {
    const std::filesystem::path path = place / fmt::format("{}.so", module.name);
    sought += fmt::format("{}'{}'", sought.empty() ? "" : " or ", path.string());
    if (!std::filesystem::exists(path)) continue;
    void* const opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr)
      throw InputError(fmt::format("{}: cannot load '{}': {}; required {}", module.wanted, path.string(), dlerror(),
                                   module.required));
    void* const found = dlsym(opened, symbol);
    if (found == nullptr)
      throw InputError(
          fmt::format("{}: '{}' has no '{}'; required the module of this build", module.wanted, path.string(), symbol));
    return found;
  }
  throw InputError(
      fmt::format("{}: found no {} module at {}; required {}", module.wanted, module.name, sought, module.required));
}

std::filesystem::path library_directory() {
  Dl_info info{};
  void* found = nullptr;
  const int known = dladdr1(reinterpret_cast<const void*>(&library_directory), &info, &found, RTLD_DL_LINKMAP);
  DOPPLER_CHECK(known != 0, "the dynamic linker does not know the file of this code");
  // The name of a program is empty here, and argv[0] in `info`: a path only if it was called by one.
  const std::filesystem::path name = static_cast<const link_map*>(found)->l_name;
  return std::filesystem::canonical(name.empty() ? "/proc/self/exe" : name).parent_path();
}

}  // namespace doppler
