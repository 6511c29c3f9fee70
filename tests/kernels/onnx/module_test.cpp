#include <gtest/gtest.h>

#include "doppler/kernels/onnx/kernel.h"
#include "tests/kernels/onnx/kernel_runs.h"

namespace doppler::test {
namespace {

TEST(TheModuleOfKernels, IsOpenedOnDemandAndComputes) {
  const model::KernelLibrary& library = model::open_kernel_library();
  EXPECT_TRUE(library.has("", "Conv"));
  EXPECT_TRUE(library.has("doppler", "Attention"));
  EXPECT_FALSE(library.has("", "NoSuch"));
  const model::Node node{"relu", "Relu", "", {"x"}, {"y"}, {}};
  const std::vector<model::Value> results = library.evaluate(node, {floats({2}, {-1, 3})}, {});
  EXPECT_EQ(results[0].tensor.as<float>()[0], 0);
  EXPECT_EQ(results[0].tensor.as<float>()[1], 3);
}

}  // namespace
}  // namespace doppler::test
