#include "doppler/kernels/host/shared_library.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/base/memory.h"

namespace doppler {

SharedLibrary::SharedLibrary(Description description) : description_(std::move(description)) {
  for (const std::string& file : description_.files) {
    handle_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
  }
  const std::string why = ::dlerror();
  for (const char* lack : {"Cannot allocate memory", "cannot allocate memory", "failed to map segment"})
    if (why.find(lack) != std::string::npos) throw OutOfMemory(memory_in_use() + description_.bytes);
  throw InputError(fmt::format("{}: cannot load it ({}); required {}", description_.name, why, description_.package));
}

bool has_room(std::size_t bytes) {
  void* const place =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return false;
  ::munmap(place, bytes);
  return true;
}

void* SharedLibrary::address(const char* name) const {
  void* const found = ::dlsym(handle_, name);
  if (found == nullptr)
    throw InputError(
        fmt::format("{}: found no '{}' in it; required {}", description_.name, name, description_.package));
  return found;
}

}  // namespace doppler
