#include "doppler/kernels/host/onednn.h"

#include <dnnl.h>
#include <execinfo.h>
#include <vector>

#include <fmt/format.h>

#include "doppler/base/error.h"
#include "doppler/base/memory.h"
#include "doppler/kernels/host/shared_library.h"

namespace doppler {
namespace {

static_assert(DNNL_VERSION_MAJOR == 2, "the name of the library below has the version that the header is of");
constexpr Bytes kOneDnnBytes = 60 << 20;  // what its code and tables take, about

struct OneDnn {
  decltype(&::dnnl_sgemm) sgemm;
  void (*set_threads)(int);  // of the calling thread
};

void call(const OneDnn& library, const Sgemm& p) {
  // Every device is one thread. With one, OpenMP starts none and oneDNN calls its loop itself.
  thread_local bool alone = false;
  if (!alone) library.set_threads(1);
  alone = true;
  const dnnl_status_t status =
      library.sgemm(p.transposed_a, p.transposed_b, p.m, p.n, p.k, 1, p.a, p.a_row, p.b, p.b_row, 0, p.c, p.c_row);
  if (status == dnnl_out_of_memory) throw OutOfMemory(memory_in_use() + kOneDnnBytes);
  DOPPLER_CHECK(status == dnnl_success, "oneDNN: status {} of a product of {} × {} × {}", static_cast<int>(status), p.m,
                p.n, p.k);
}

// What the loops and the buffers of a first product take. Without room for them oneDNN reads what it did not get.
constexpr std::size_t kRoomForLoops = std::size_t{32} << 20;

// oneDNN generates its loops in the first product of a kind. A lack of memory is an exception that passes through
// functions of the C library, which needs the unwinder for that and ends the process if it cannot load it then.
void generate_loops(const OneDnn& library) {
  void* frame = nullptr;
  if (::backtrace(&frame, 1) == 0 || !has_room(kRoomForLoops))
    throw OutOfMemory(memory_in_use() + kOneDnnBytes);  // loads the unwinder
  constexpr std::int64_t kSize = 64;
  const std::vector<float> a(kSize * kSize), b(kSize * kSize);
  std::vector<float> c(kSize * kSize);
  for (const char left : {'N', 'T'})
    for (const char right : {'N', 'T'})
      call(library, {left, right, kSize, kSize, kSize, a.data(), kSize, b.data(), kSize, c.data(), kSize});
}

// The library stays for as long as the process does.
const OneDnn& onednn() {
  static const OneDnn functions = [] {
    const SharedLibrary library({"oneDNN", {"libdnnl.so.2"}, "libdnnl2", kOneDnnBytes});
    // Debian's variant starts threads by OpenMP, whose functions are in a library that it has loaded with it.
    const OneDnn found{library.function<decltype(::dnnl_sgemm)>("dnnl_sgemm"),
                       library.function<void(int)>("omp_set_num_threads")};
    generate_loops(found);
    return found;
  }();
  return functions;
}

}  // namespace

void load_onednn() { onednn(); }

void onednn_sgemm(const Sgemm& product) { call(onednn(), product); }

}  // namespace doppler
