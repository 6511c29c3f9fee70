// The kernels of libtorch on its processor, held against the same reference as the host's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doppler/base/error.h"
#include "doppler/engine/aten/aten_backend.h"
#include "tests/engine/test_backend.h"

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
    EXPECT_THAT(error.what(),
                testing::MatchesRegex("--devices cuda: found [0-9]+ GPUs; required 120, one for each .*"));
  }
}

}  // namespace
}  // namespace doppler
