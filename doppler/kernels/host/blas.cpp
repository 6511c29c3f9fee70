#include "doppler/kernels/host/blas.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "doppler/base/error.h"
#include "doppler/base/memory.h"
#include "doppler/kernels/host/processor.h"
#include "doppler/kernels/host/shared_library.h"

namespace doppler {
namespace {

constexpr Bytes kOpenBlasBytes = 40 << 20;  // what its code and tables take, about

// A variable of the environment while a library is loaded that takes its options from there and nowhere else. Threads
// that read the environment at that moment are not safe from it, so whoever computes makes the backend before it starts
// threads.
class VariableForNow {
 public:
  // What is set already is the user's own and stays.
  VariableForNow(const char* name, const char* value) : name_(name), ours_(!is_set(name)) {
    if (ours_) ::setenv(name, value, 1);
  }
  ~VariableForNow() {
    if (ours_) ::unsetenv(name_);
  }
  VariableForNow(const VariableForNow&) = delete;
  VariableForNow& operator=(const VariableForNow&) = delete;

 private:
  static bool is_set(const std::string_view name) {
    for (char** variable = ::environ; variable != nullptr && *variable != nullptr; ++variable) {
      const std::string_view text = *variable;
      if (text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=') return true;
    }
    return false;
  }

  const char* name_;
  bool ours_;
};

// OpenBLAS chooses its loops by the processor's name, and takes one that it does not know for an old one, up to five
// times as slow. These are its names for what the features allow; null leaves the choice to it.
const char* core_type() {
  const ProcessorFeatures features = processor_features();
  return features.avx512 ? "SkylakeX" : features.avx2 ? "Haswell" : nullptr;
}

SharedLibrary open_library() {
  // It starts threads when it is loaded, which are of no use: every device is one thread.
  const VariableForNow one_thread("OPENBLAS_NUM_THREADS", "1");
  const char* const type = core_type();
  std::optional<VariableForNow> told;
  if (type != nullptr) told.emplace("OPENBLAS_CORETYPE", type);
  // By the path that the build found, because the system's default BLAS may be any other.
  return SharedLibrary({"OpenBLAS",
                        {DOPPLER_OPENBLAS_DIRECTORY "/libopenblas.so.0", "libopenblas.so.0"},
                        "libopenblas0-pthread",
                        kOpenBlasBytes});
}

struct Loaded {
  Blas blas;
  void* (*take_buffer)(int);
  void (*give_buffer_back)(void*);
};

Loaded load() {
  const SharedLibrary library = open_library();
  constexpr int kSequential = 0;
  if (library.function<int()>("openblas_get_parallel")() == kSequential)
    throw InternalError(
        "OpenBLAS: found the serial variant, whose products are wrong when threads call it at the same time; required "
        "libopenblas0-pthread");
  library.function<void(int)>("openblas_set_num_threads")(1);
  return {{library.function<decltype(::cblas_dgemm)>("cblas_dgemm"),
           library.function<decltype(::cblas_cgemm)>("cblas_cgemm"),
           library.function<decltype(::cblas_zgemm)>("cblas_zgemm"),
           library.function<decltype(::cblas_sgemv)>("cblas_sgemv"),
           library.function<decltype(::cblas_dgemv)>("cblas_dgemv"),
           library.function<decltype(::cblas_cgemv)>("cblas_cgemv"),
           library.function<decltype(::cblas_zgemv)>("cblas_zgemv")},
          library.function<void*(int)>("blas_memory_alloc"),
          library.function<void(void*)>("blas_memory_free")};
}

// The library stays for as long as the process does.
const Loaded& loaded() {
  static const Loaded library = load();
  return library;
}

// The size of OpenBLAS's buffers on x86-64, with a page (BUFFER_SIZE in its common_x86_64.h).
constexpr std::size_t kBufferBytes = (std::size_t{128} << 20) + 4096;

constexpr unsigned kMostBuffers = 64;  // It has no more than twice as many as the processors that it was built for.

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
