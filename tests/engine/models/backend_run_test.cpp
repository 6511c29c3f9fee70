// ONNX's own backend tests through the engine: every model on one device, on two with ops placed at random, and in
// blocks that are placed at random.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "doppler/base/file.h"
#include "doppler/base/rng.h"
#include "doppler/engine/threads/threads_executor.h"
#include "doppler/load.h"
#include "doppler/machine.h"
#include "tests/engine/models/processors.h"
#include "tests/kernels/onnx/backend_cases.h"

namespace doppler {
namespace {

using model::Value;

std::vector<Value> run_on(DeviceId devices, std::uint32_t parts, const test::BackendCase& one,
                          const test::BackendData& data) {
  const Machine machine = test::processors(devices, parts > 0 ? Links::shared : Links::free);
  const LoadOptions options{.shard = parts, .rewrite = true, .runnable = true};
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

// Runs the case in blocks. Returns nothing if a node is evaluated anew in every run, which blocks cannot be.
std::optional<std::vector<Value>> run_in_blocks(std::uint32_t parts, const test::BackendCase& one,
                                                const test::BackendData& data) {
  try {
    return run_on(2, parts, one, data);
  } catch (const InputError& error) {
    if (std::string_view(error.what()).find("to run it in blocks") == std::string_view::npos) throw;
    return std::nullopt;
  }
}

class ABackendSuite : public testing::TestWithParam<const char*> {};

TEST_P(ABackendSuite, PassesByTheEngineButForTheListedCases) {
  if (test::backend_cases(GetParam()).empty()) GTEST_SKIP() << "libonnx-testdata is not installed";
  const auto run = [](const test::BackendCase& one, const test::BackendData& data) {
    const std::vector<Value> single = run_on(1, 0, one, data);
    const auto compare = [&](const std::vector<Value>& other, const char* what) {
      for (std::size_t i = 0; i < single.size(); ++i)
        if (const std::string why = test::difference(other[i], single[i]); !why.empty())
          throw InputError(fmt::format("{} from one: {}", what, why));
    };
    compare(run_on(2, 0, one, data), "two devices differ");
    for (const std::uint32_t parts : {2, 3})
      if (const auto blocks = run_in_blocks(parts, one, data)) compare(*blocks, "blocks on two devices differ");
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
