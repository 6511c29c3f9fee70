#include "doppler/base/module.h"

#include <dlfcn.h>
#include <link.h>

#include <fmt/format.h>

#include "doppler/base/error.h"

namespace doppler {

void* open_module(const Module& module, const std::filesystem::path& directory, const char* symbol) {
  const std::string file = fmt::format("{}.so", module.name);
  const std::filesystem::path above = directory.parent_path();
  const std::filesystem::path candidates[] = {directory / file, above / "lib" / "doppler" / file, above / "bin" / file};
  for (const auto& path : candidates) {
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
  throw InputError(fmt::format("{}: found no {} module at '{}', '{}' or '{}'; required {}", module.wanted, module.name,
                               candidates[0].string(), candidates[1].string(), candidates[2].string(),
                               module.required));
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
