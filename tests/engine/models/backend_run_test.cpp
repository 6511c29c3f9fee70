// ONNX's own backend tests through the engine: every model on one device, and on two with ops placed at random.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "doppler/base/file.h"
#include "doppler/base/rng.h"
#include "doppler/engine/threads/threads_executor.h"
#include "doppler/load.h"
#include "doppler/machine.h"
#include "tests/kernels/onnx/backend_cases.h"

namespace doppler {
namespace {

using model::Value;

// Cores of some speed: times say nothing here.
Machine processors(DeviceId count) {
  std::vector<Device> devices(count);
  for (DeviceId id = 0; id < count; ++id) {
    devices[id].name = fmt::format("cpu{}", id);
    devices[id].type = "cpu";
    devices[id].rates = {{"*", "*", 1e11}};
    devices[id].memory_bytes_per_second = 1e10;
  }
  return Machine("cores", devices, std::vector<Link>(count * count, Link{1e-5, 1e10}));
}

std::vector<Value> run_on(DeviceId devices, const test::BackendCase& one, const test::BackendData& data) {
  const Machine machine = processors(devices);
  const LoadOptions options{.rewrite = true, .runnable = true};
  const GraphFile file = read_graph_file(one.model().string(), &machine, options);
  const Problem problem = make_problem(file, machine, options);
  ThreadsOptions how{.library = &model::kernel_library()};
  for (const auto& [name, value] : data.inputs) {
    if (value.kind != Value::Kind::tensor)
      throw InputError(fmt::format("input '{}' is no tensor; required one to run by the engine", name));
    if (problem.model()->find_input(name) != model::kAbsent) how.tensors[name] = value.tensor;
  }
  ThreadsExecutor executor(problem, std::move(how));
  Rng rng(1);
  Placement placement;
  for (OpId op = 0; op < problem.op_count(); ++op) placement.device_of_op.push_back(rng.below(devices));
  return executor.compute_model(placement);
}

class ABackendSuite : public testing::TestWithParam<const char*> {};

TEST_P(ABackendSuite, PassesByTheEngineButForTheListedCases) {
  if (test::backend_cases(GetParam()).empty()) GTEST_SKIP() << "libonnx-testdata is not installed";
  const auto run = [](const test::BackendCase& one, const test::BackendData& data) {
    const std::vector<Value> single = run_on(1, one, data);
    const std::vector<Value> several = run_on(2, one, data);
    for (std::size_t i = 0; i < single.size(); ++i)
      if (const std::string why = test::difference(several[i], single[i]); !why.empty())
        throw InputError(fmt::format("two devices differ from one: {}", why));
    return single;
  };
  test::expect_suite(GetParam(), run, DOPPLER_ENGINE_EXCEPTIONS);
}

INSTANTIATE_TEST_SUITE_P(OfOnnx, ABackendSuite,
                         testing::Values("node", "simple", "pytorch-converted", "pytorch-operator"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace doppler
