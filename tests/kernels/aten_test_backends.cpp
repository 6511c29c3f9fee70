// The kernels of libtorch on its processor, held against the same reference as the host's.

#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/kernels/aten/aten_backend.h"
#include "tests/kernels/test_backend.h"

namespace doppler {

std::vector<TestBackend> test_backends() {
  return {{"aten", [] { return make_aten_backend(AtenDevices::cpu, 3); }}};
}

namespace {

TEST(CudaDevices, AreRefusedWhereThereAreFewerGpus) {
  // Nobody has 120 of them, and libtorch counts to 127.
  try {
    make_aten_backend(AtenDevices::cuda, 120);
    FAIL() << "required an InputError";
  } catch (const InputError& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with("--devices cuda: found ")) << text;
    EXPECT_TRUE(text.ends_with(" GPUs; required 120, one for each device of the machine")) << text;
  }
}

}  // namespace
}  // namespace doppler
