// The kernels, node by node on one thread, against ONNX's own backend tests.

#include <algorithm>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "doppler/kernels/onnx/kernel.h"
#include "tests/kernels/onnx/backend_cases.h"

namespace doppler::test {
namespace {

std::vector<model::Value> interpret(const BackendCase& one, const BackendData& data) {
  std::ifstream file(one.model(), std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  const model::ModelBody body = model::parse_model_body(one.name, content.str());
  return model::kernel_library().run_model(body, data.inputs);
}

class TheInterpreter : public testing::TestWithParam<const char*> {};

TEST_P(TheInterpreter, PassesOnnxsBackendTests) { expect_suite(GetParam(), interpret, DOPPLER_BACKEND_EXCEPTIONS); }

INSTANTIATE_TEST_SUITE_P(Suites, TheInterpreter,
                         testing::Values("node", "simple", "pytorch-converted", "pytorch-operator"),
                         [](const auto& suite) {
                           std::string name = suite.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace doppler::test
