#include "doppler/base/module.h"

#include <dlfcn.h>

#include <fmt/format.h>

#include "doppler/base/error.h"

namespace doppler {

void* open_module(const Module& module, const std::filesystem::path& directory, const char* symbol) {
  const std::string file = fmt::format("{}.so", module.name);
  const std::filesystem::path candidates[] = {directory / file, directory.parent_path() / "lib" / "doppler" / file};
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
  throw InputError(fmt::format("{}: found no {} module at '{}' or '{}'; required {}", module.wanted, module.name,
                               candidates[0].string(), candidates[1].string(), module.required));
}

std::filesystem::path executable_directory() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }

}  // namespace doppler
