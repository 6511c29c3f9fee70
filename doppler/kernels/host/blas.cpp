#include "doppler/kernels/host/blas.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>
#include <new>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "doppler/base/error.h"
#include "doppler/base/memory.h"

namespace doppler {
namespace {

constexpr const char* kBesideItsHeader = DOPPLER_OPENBLAS_DIRECTORY "/libopenblas.so.0";
constexpr const char* kWhereverItIs = "libopenblas.so.0";
constexpr Bytes kLibraryBytes = 40 << 20;  // what its code and tables take, about

// By the path that the build found, because the system's default BLAS may be any other.
void* open_library() {
  // It starts threads when it is loaded, which are of no use: every device is one thread.
  ::setenv("OPENBLAS_NUM_THREADS", "1", 1);
  for (const char* path : {kBesideItsHeader, kWhereverItIs})
    if (void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
  const std::string why = ::dlerror();
  for (const char* lack : {"Cannot allocate memory", "failed to map segment"})
    if (why.find(lack) != std::string::npos) throw OutOfMemory(memory_in_use() + kLibraryBytes);
  throw InputError(fmt::format("OpenBLAS: cannot load it ({}); required libopenblas0-pthread", why));
}

template <typename Function>
Function* function(void* library, const char* name) {
  void* const found = ::dlsym(library, name);
  if (found == nullptr)
    throw InputError(fmt::format("OpenBLAS: found no '{}' in it; required libopenblas0-pthread", name));
  return reinterpret_cast<Function*>(found);
}

struct Loaded {
  Blas blas;
  void* (*take_buffer)(int);
  void (*give_buffer_back)(void*);
};

Loaded load() {
  void* const library = open_library();
  constexpr int kSequential = 0;
  if (function<int()>(library, "openblas_get_parallel")() == kSequential)
    throw InternalError(
        "OpenBLAS: found the serial variant, whose products are wrong when threads call it at the same time; required "
        "libopenblas0-pthread");
  function<void(int)>(library, "openblas_set_num_threads")(1);
  return {{function<decltype(::cblas_sgemm)>(library, "cblas_sgemm"),
           function<decltype(::cblas_dgemm)>(library, "cblas_dgemm"),
           function<decltype(::cblas_cgemm)>(library, "cblas_cgemm"),
           function<decltype(::cblas_zgemm)>(library, "cblas_zgemm"),
           function<decltype(::cblas_sgemv)>(library, "cblas_sgemv"),
           function<decltype(::cblas_dgemv)>(library, "cblas_dgemv"),
           function<decltype(::cblas_cgemv)>(library, "cblas_cgemv"),
           function<decltype(::cblas_zgemv)>(library, "cblas_zgemv")},
          function<void*(int)>(library, "blas_memory_alloc"),
          function<void(void*)>(library, "blas_memory_free")};
}

// The library stays for as long as the process does.
const Loaded& loaded() {
  static const Loaded library = load();
  return library;
}

// The size of OpenBLAS's buffers on x86-64, with a page (BUFFER_SIZE in its common_x86_64.h).
constexpr std::size_t kBufferBytes = (std::size_t{128} << 20) + 4096;

constexpr unsigned kMostBuffers = 64;  // It has no more than twice as many as the processors that it was built for.

bool has_room(std::size_t bytes) {
  void* const place =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return false;
  ::munmap(place, bytes);
  return true;
}

}  // namespace

const Blas& blas() { return loaded().blas; }

void reserve_blas_buffers(unsigned threads) {
  const Loaded& library = loaded();
  static std::mutex one_at_a_time;  // so that the room that was found is still there
  const std::lock_guard lock(one_at_a_time);
  std::vector<void*> taken;
  bool room = true;
  for (unsigned i = 0; i < std::min(threads, kMostBuffers) && room; ++i) {
    room = has_room(kBufferBytes);
    if (room) taken.push_back(library.take_buffer(0));
  }
  for (void* const buffer : taken) library.give_buffer_back(buffer);  // They stay mapped, for whoever calls next.
  if (!room) throw OutOfMemory(memory_in_use() + kBufferBytes);
}

}  // namespace doppler
