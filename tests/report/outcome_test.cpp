#include "doppler/report/outcome.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/report/fixture.h"

namespace doppler {
namespace {

using nlohmann::json;

Outcome good_outcome() {
  Outcome outcome;
  outcome.made.method = outcome.made.winner = "heft";
  outcome.made.graph = "two_ops";
  outcome.made.makespan = 4;
  outcome.made.lower_bound = 3.2;
  outcome.gap = 0.25;  // 4 / 3.2 - 1
  outcome.seconds = 0.1;
  return outcome;
}

TEST(AnOutcome, OfASimulationHasTheKeysThatScriptsRead) {
  const json result =
      json::parse(simulation_to_json(good_outcome(), two_op_timeline(), two_op_graph(), uniform_machine(2)));
  EXPECT_EQ(result.at("makespan"), 4.0);
  EXPECT_EQ(result.at("lower_bound"), 3.2);
  EXPECT_EQ(result.at("gap"), 0.25);
  EXPECT_EQ(result.at("feasible"), true);
  EXPECT_EQ(result.at("unit"), "s");
  EXPECT_EQ(result.at("devices")[1].at("utilisation"), 0.25);
  EXPECT_EQ(result.at("transfers"), (json{{"count", 1}, {"bytes", 8}}));
  EXPECT_FALSE(result.contains("overflow"));
}

TEST(AnOutcome, ThatOverflowsNamesTheOpAndTheDevice) {
  Timeline timeline = two_op_timeline();
  timeline.overflow = Timeline::Overflow{.op = 0, .device = 1, .needed = 20, .capacity = 10};
  Outcome outcome = good_outcome();
  outcome.feasible = false;
  const json result = json::parse(simulation_to_json(outcome, timeline, two_op_graph(), uniform_machine(2)));
  EXPECT_EQ(result.at("feasible"), false);
  EXPECT_EQ(result.at("overflow"), (json{{"op", "a"}, {"device", "device1"}, {"needed", 20}, {"capacity", 10}}));
}

TEST(AnOutcome, OfAPlacementCarriesThePlacementAsItsFile) {
  Placement placement;
  placement.device_of_op = {0, 1};
  const json result = json::parse(
      place_result_to_json(good_outcome(), two_op_timeline(), two_op_graph(), uniform_machine(2), placement, 5));
  EXPECT_EQ(result.at("method"), "heft");
  EXPECT_EQ(result.at("seconds"), 0.1);
  EXPECT_EQ(result.at("single_device_makespan"), 5.0);
  EXPECT_EQ(parse_placement("test", result.at("placement").dump()).placement, placement);
}

TEST(AComparison, SaysWhyAMethodFoundNothing) {
  Outcome bad;
  bad.made.method = "single";
  bad.feasible = false;
  bad.reason = "does not fit";
  const std::vector<Outcome> outcomes = {good_outcome(), bad};
  const json results = json::parse(comparison_to_json(outcomes)).at("results");
  ASSERT_EQ(results.size(), 2u);
  for (const char* key : {"graph", "method", "makespan", "lower_bound", "gap", "seconds", "feasible"})
    EXPECT_TRUE(results[0].contains(key)) << key;
  EXPECT_EQ(results[1].at("makespan"), nullptr);
  EXPECT_EQ(results[1].at("reason"), "does not fit");
  EXPECT_EQ(results[1].at("feasible"), false);
}

TEST(AnOutcome, SurvivesNamesThatAreNotUtf8) {
  Outcome outcome = good_outcome();
  outcome.made.graph = "\xff.json";
  EXPECT_NO_THROW(json::parse(comparison_to_json(std::vector<Outcome>{outcome})));
}

}  // namespace
}  // namespace doppler
