#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "doppler/graph/formats/read_graph.h"
#include "doppler/graph/levels.h"
#include "doppler/sim/simulator.h"

namespace doppler {
namespace {

struct Golden {
  const char* file;
  DeviceId devices;
  Seconds one_device, critical_path;  // in the file's unit; spec/workloads.md §3 and §4
  Seconds round_robin_published;      // op v on device v mod devices, published ties
};
constexpr double kUnit = 1e10;  // the published tables divide by it
constexpr Golden kGolden[] = {
    {"chain_mm_112nodes", 4, 4800.28, 300.03, 2000.14},
    {"ffnn_192nodes", 4, 226.783186, 14.1740, 84.182414},
    {"transformer_block_215nodes", 4, 388.677819, 64.9582, 255.016892},
    {"full_transformer_layer_261nodes", 4, 388.976969, 65.0350, 274.882989},
    {"8gpu_transformer_block", 8, 777.223096, 64.9582, 342.039566},
    {"8gpu_full_transformer", 8, 777.856491, 65.0350, 323.608851},
};
constexpr double kPrinted = 5e-3;      // the tables give at least two decimals
constexpr double kPrintedPath = 5e-4;  // critical paths are given to six digits

const std::filesystem::path kShared = DOPPLER_SHARED_DATA;

class ThePublishedSimulator : public testing::TestWithParam<Golden> {
 protected:
  void SetUp() override {
    const auto path = kShared / "doppler_graphs" / (std::string(GetParam().file) + ".txt");
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
    graph_.emplace(read_graph(path.string()).graph);
    machine_.emplace(uniform_machine(GetParam().devices));
    Rules rules;
    rules.ties = Ties::published;
    problem_.emplace(*graph_, *machine_, rules);
  }
  std::optional<Graph> graph_;
  std::optional<Machine> machine_;
  std::optional<Problem> problem_;
};

TEST_P(ThePublishedSimulator, IsReproducedExactly) {
  const auto path = kShared / "sim_vectors" / (std::string(GetParam().file) + ".json");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  const nlohmann::json vectors = nlohmann::json::parse(std::ifstream(path));
  ASSERT_EQ(vectors["num_devices"], GetParam().devices);
  ASSERT_EQ(vectors["cases"].size(), 20u);
  Simulator simulator(*problem_);
  for (const auto& test_case : vectors["cases"]) {
    Placement placement;
    placement.device_of_op = test_case["assignment"].get<std::vector<DeviceId>>();
    EXPECT_EQ(simulator.makespan(placement), test_case["makespan"].get<double>()) << test_case["kind"];
    EXPECT_EQ(simulator.simulate(placement).makespan, test_case["makespan"].get<double>()) << test_case["kind"];
  }
}

// What docs/simulator.md says of the default tie rule.
TEST(TheDefaultTieRule, DiffersFromThePublishedOneAsDocumented) {
  int cases = 0, different = 0, above_two_percent = 0;
  double largest = 0;
  for (const Golden& golden : kGolden) {
    const auto graph_path = kShared / "doppler_graphs" / (std::string(golden.file) + ".txt");
    const auto vectors_path = kShared / "sim_vectors" / (std::string(golden.file) + ".json");
    if (!std::filesystem::exists(vectors_path)) GTEST_SKIP() << vectors_path << " is absent";
    const Graph graph = read_graph(graph_path.string()).graph;
    const Machine machine = uniform_machine(golden.devices);
    const Problem problem(graph, machine);
    Simulator simulator(problem);
    const nlohmann::json vectors = nlohmann::json::parse(std::ifstream(vectors_path));
    for (const auto& test_case : vectors["cases"]) {
      const double ratio = simulator.makespan(test_case["assignment"].get<std::vector<DeviceId>>()) /
                           test_case["makespan"].get<double>();
      ++cases;
      different += ratio != 1;
      above_two_percent += std::abs(ratio - 1) > 0.022;
      largest = std::max(largest, std::abs(ratio - 1));
    }
  }
  EXPECT_EQ(cases, 120);
  EXPECT_EQ(different, 19);
  EXPECT_EQ(above_two_percent, 3);
  EXPECT_NEAR(largest, 0.192, 0.001);
}

TEST_P(ThePublishedSimulator, GivesThePublishedGoldenValues) {
  const OpId n = graph_->op_count();
  std::vector<DeviceId> one(n, 0), round_robin(n);
  for (OpId op = 0; op < n; ++op) round_robin[op] = op % GetParam().devices;
  Simulator simulator(*problem_);
  EXPECT_NEAR(simulator.makespan(one) / kUnit, GetParam().one_device, kPrinted);
  EXPECT_NEAR(simulator.makespan(round_robin) / kUnit, GetParam().round_robin_published, kPrinted);
  EXPECT_NEAR(levels(*graph_, problem_->costs().fastest_times(), {}).longest / kUnit, GetParam().critical_path,
              kPrintedPath);
  // The one-device value is the sum of the costs, to the last integer.
  Seconds work = 0;
  for (OpId op = 0; op < n; ++op) work += problem_->costs().op_time(op, 0);
  EXPECT_EQ(simulator.makespan(one), work);
}

INSTANTIATE_TEST_SUITE_P(EveryGraph, ThePublishedSimulator, testing::ValuesIn(kGolden),
                         [](const auto& suite) { return std::string(suite.param.file); });

}  // namespace
}  // namespace doppler
