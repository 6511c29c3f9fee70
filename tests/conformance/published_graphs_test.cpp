#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "doppler/graph/formats/read_graph.h"
#include "doppler/machine.h"
#include "tests/support/problems.h"

namespace doppler {
namespace {

constexpr double kPublishedUnit = 1e10;

// Mean of 50 runs of CRITICAL PATH, measured independently of this code (spec/doppler.md, section 5), with
// ties of ready ops by id; in kPublishedUnit.
struct Published {
  const char* file;
  DeviceId devices;
  double mean_as_published, mean_corrected;
};
void PrintTo(const Published& graph, std::ostream* out) { *out << graph.file; }

class APublishedGraph : public testing::TestWithParam<Published> {
 protected:
  void SetUp() override {
    path_ = std::string(DOPPLER_SHARED_DATA "/doppler_graphs/") + GetParam().file + ".txt";
    if (!std::filesystem::exists(path_)) GTEST_SKIP() << path_ << " is absent";
  }
  std::string path_;
};

TEST_P(APublishedGraph, TakesAsLongUnderCriticalPathAsMeasuredElsewhere) {
  const Problem world(read_graph(path_).graph, uniform_machine(GetParam().devices));
  for (const bool published : {false, true}) {
    constexpr int kRuns = 500, kRunsElsewhere = 50;
    double sum = 0, squares = 0;
    for (int run = 0; run < kRuns; ++run) {
      MethodOptions options;
      options.budget = Budget::for_evaluations(1);
      options.published = published;
      options.seed = static_cast<std::uint64_t>(run);
      const double makespan =
          test::makespan(world, test::run(method_by_name("critical_path").run, world, options)) / kPublishedUnit;
      sum += makespan;
      squares += makespan * makespan;
    }
    const double mean = sum / kRuns, deviation = std::sqrt(squares / kRuns - mean * mean);
    RecordProperty(published ? "mean_as_published" : "mean_corrected", std::to_string(mean));
    // Four standard errors of the difference of the means, and what was rounded away there (three digits).
    const double error = deviation * std::sqrt(1.0 / kRuns + 1.0 / kRunsElsewhere);
    const double expected = published ? GetParam().mean_as_published : GetParam().mean_corrected;
    EXPECT_NEAR(mean, expected, 4 * error + 0.005 * expected) << (published ? "as published" : "corrected");
  }
}

INSTANTIATE_TEST_SUITE_P(Files, APublishedGraph,
                         testing::Values(Published{"chain_mm_112nodes", 4, 1594, 1810},
                                         Published{"ffnn_192nodes", 4, 84.2, 84.2},
                                         Published{"transformer_block_215nodes", 4, 246, 246},
                                         Published{"full_transformer_layer_261nodes", 4, 233, 237},
                                         Published{"8gpu_full_transformer", 8, 271, 275}),
                         [](const auto& test) { return std::string(test.param.file); });

}  // namespace
}  // namespace doppler
