#include "doppler/results.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "doppler/base/error.h"
#include "doppler/report/text.h"
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
  outcome.bound_kind = LowerBound::Kind::interval;
  outcome.gap = 0.25;  // 4 / 3.2 - 1
  outcome.seconds = 0.1;
  outcome.made.version = "0.1.0";
  outcome.made.budget = "10s";
  return outcome;
}

// A simulation is of a placement that somebody else made.
SimulationResult good_simulation() {
  Outcome outcome = good_outcome();
  outcome.made.method.clear();
  outcome.made.winner.clear();
  outcome.seconds = 0;
  return simulation_result(outcome, two_op_problem(), two_op_timeline());
}

PlaceResult good_place() {
  PlaceResult result;
  result.run = simulation_result(good_outcome(), two_op_problem(), two_op_timeline());
  result.ops = 2;
  result.edges = 1;
  result.single_device = 5;
  result.placement.device_of_op = {0, 1};
  return result;
}

Comparison good_comparison() {
  Outcome bad;
  bad.made.method = bad.made.winner = "single";
  bad.made.graph = "two_ops";
  bad.feasible = false;
  bad.reason = "does not fit";
  Outcome varied = good_outcome();
  varied.expected = 4.5;
  varied.expected_error = 0.1;
  varied.p95 = 5;
  varied.expected_bound = 3.5;
  varied.objective = "expected";
  varied.jitter = 0.1;
  return {{{varied, 2, false}, {bad, 2, true}}};
}

GraphFacts good_facts() {
  GraphFacts facts;
  facts.graph = "model.onnx";
  facts.format = "onnx";
  facts.machine = "p100x4";
  facts.ops = 2;
  facts.measure = GraphFacts::Measure::seconds;
  facts.work = 3;
  facts.critical_path = 2;
  facts.communication = 1.5;
  facts.kinds = {{"matmul", 2, 3, 10, 20, 1, 1}};
  facts.bound = LowerBound{2, LowerBound::Kind::critical_path};
  facts.model = ModelFacts{5, 10, 7, 28, 3, 1};
  facts.products = {{"f32", 120e9, 100e9}};
  facts.warnings = {"model.onnx: careful"};
  return facts;
}

RunResult good_run() {
  RunResult run;
  run.graph = "g";
  run.machine = "box";
  run.devices = "emulated";
  run.measured = 2;
  run.times = {1, 2, 3};
  run.predicted = 2.1;
  run.one_device = 4;
  run.last = 2;
  run.device_times = {{"cpu0", 3, {.busy = 1, .data = 1}, 64}};
  return run;
}

ServiceResult good_service() {
  ServiceResult service;
  service.graph = service.title = "g";
  service.runs = 4;
  service.explored = service.changes = 1;
  service.times = {1, 2, 3, 4};
  service.challengers = {2};
  service.at_first = 1;
  service.drifts = {{0, "gpu0-gpu1", "slower", 2, 1, 1.0, 2.0}};
  service.lost = 1;
  service.resumed_at = 3;
  service.ended = "nothing is left";
  service.events = {{2, "changed", "the challenger takes over"}};
  return service;
}

ValidityResult good_validity() {
  Validity of;
  of.graph = "g";
  of.pearson = 0.99;
  of.repeatability = 0.98;
  of.samples = {{"heft", 1, 1.1, {1, 1.2}}, {"random", 2, 2.2, {2.2}}};
  return {{of}};
}

CalibrationResult good_calibration() {
  CalibrationResult calibration;
  calibration.machine = "this box";
  calibration.links = "receiver";
  calibration.devices = 2;
  calibration.kinds = {{"matmul", "f32", 2, 40, 1e11, 1e10, 0.1, 0.02, 1.05}};
  calibration.products = {{"f32", 120e9, 100e9}, {"f64", 60e9, 50e9}};
  calibration.jitter = 0.03;
  calibration.transfer_jitter = 0.4;
  calibration.tail_probability = 0.004;
  calibration.tail_factor = 2.5;
  calibration.fit = {2000, 0.05, {{0.95, 1.1, 1.08}, {0.99, 1.3, 1.25}}, 0.02, 0.021};
  return calibration;
}

TrainingResult good_training() {
  TrainingResult training;
  training.directory = "run";
  training.episodes = 16;
  training.seconds = 2;
  training.held_out = 0.97;
  training.system = TrainingResult::System{60, 3, 4, true, true, 2, 1.8, 0.01, 3, false};
  training.tasks = {{"g@p100x4", 4.0, 3.2, false, "expected", 0.05}, {"h@p100x4", std::nullopt, 3, true, "exact"}};
  return training;
}

PlanResult good_plan() {
  PlanResult plan;
  plan.program = "chain.ein";
  plan.plan = "eindecomp";
  plan.expressions = 3;
  plan.parts = plan.sites = 4;
  plan.cuts = {{"y", "matmul", "i:2 j:2", 4}};
  plan.plans = {{"uncut", 0, 0, 2, 2, 2.5, 1024}};
  plan.relations = {"logical plan", "  0 Join"};
  return plan;
}

RewriteResult good_rewrite() {
  return {.model = "resnet50.onnx", .nodes = 176, .folded_nodes = 2, .ops = 57, .passes = {{"attentions", 12}}};
}

WhyResult good_why() {
  WhyResult why;
  why.graph = "g.json";
  why.machine = "p100x4";
  why.makespan = 9;
  why.chain_compute = 7;
  why.chain_transfer = 2;
  why.chain = {{"a", "gpu0", "nothing", false, 0, 3}, {"a", "gpu0 to gpu1", "data", true, 3, 5}};
  why.units = {{"b", "gpu1", "search", 1, 4, {{"gpu0", 7, {}}, {"gpu2", std::nullopt, "memory would not suffice"}}}};
  why.transfers = {{"a", "gpu0", "gpu1", 8, 2, 0}};
  why.idle = {{"gpu0", {.busy = 3, .done = 6}, "a", 1}};
  why.limit = "links";
  why.because = "a number";
  why.help = {{"links twice as fast", 8}};
  return why;
}

DiffResult good_diff() {
  DiffResult diff;
  diff.graph = "g.json";
  diff.machine = "p100x4";
  diff.a = {"a.json", 9, true, 2, 8, 7, 2, 0};
  diff.b = {"b.json", 7, true, 1, 0, 7, 0, 0};
  diff.ops_moved = 1;
  diff.moved = {{"b", "gpu1", "gpu0", 1, 7}};
  return diff;
}

MachineList good_machines() { return {{{"h100", "a GPU", "a data sheet", 80}}, {{"p100x4", "four", "docs", 64}}}; }

SplitResult good_split() {
  const SplitResult::Value x{"x", "f32", {2, 3}, 24, "model"}, y{"/a/y", "f32", {2}, 8, "part0.onnx"};
  SplitResult split{.graph = "m.onnx", .machine = "h100:2", .inputs = {x}, .outputs = {y}, .parts = {}};
  split.parts = {{"part0.onnx", "gpu0", 0, 3, 96, {x}, {y}}};
  split.unchecked = "too new";
  return split;
}

class EveryResult : public testing::TestWithParam<AnyResult> {};

TEST_P(EveryResult, IsReadAsItWasWritten) {
  const std::string text = to_json(GetParam());
  const AnyResult read = parse_result("test", text);
  EXPECT_EQ(read.index(), GetParam().index());
  EXPECT_TRUE(read == GetParam());  // no field is forgotten
  EXPECT_EQ(to_json(read), text);
  EXPECT_EQ(to_text(read), to_text(GetParam()));
  EXPECT_FALSE(to_text(read).empty());
}

INSTANTIATE_TEST_SUITE_P(All, EveryResult,
                         testing::Values(AnyResult(good_simulation()), AnyResult(good_place()),
                                         AnyResult(good_comparison()), AnyResult(good_facts()), AnyResult(good_plan()),
                                         AnyResult(good_rewrite()), AnyResult(good_run()), AnyResult(good_service()),
                                         AnyResult(good_validity()), AnyResult(good_calibration()),
                                         AnyResult(good_training()), AnyResult(good_why()), AnyResult(good_diff()),
                                         AnyResult(good_machines()), AnyResult(good_split())));

TEST(AResult, OfAnOlderVersionIsRead) {
  json old = json::parse(to_json(good_calibration()));
  for (const char* key : {"products", "others"}) old.erase(key);
  EXPECT_EQ(std::get<CalibrationResult>(parse_result("old", old.dump())).machine, good_calibration().machine);
}

std::string error_of(const std::string& text) {
  try {
    parse_result("file", text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(AResultFile, IsRefusedIfItIsNone) {
  EXPECT_EQ(error_of("{}"), "file: no \"result\"; required what a verb wrote with --json");
  EXPECT_EQ(error_of("[1]"), "file: no \"result\"; required what a verb wrote with --json");
  EXPECT_EQ(error_of(R"({"result":"run","version":2})"), "file: version 2; required 1");
  EXPECT_EQ(error_of(R"({"result":"validity","version":1})"), "file: no 'results'; required a whole result");
  EXPECT_EQ(error_of(R"({"result":"validity","version":1,"results":3})"),
            "file: 'results': found 3; required an array");
  EXPECT_EQ(error_of(R"({"result":"validity","version":1,"results":[],"more":1})"),
            "file: found 'more'; required a result of this version of doppler");
}

TEST(AResult, OfASimulationHasTheKeysThatScriptsRead) {
  const json result = json::parse(to_json(good_simulation()));
  EXPECT_EQ(result.at("makespan"), 4.0);
  EXPECT_EQ(result.at("lower_bound"), 3.2);
  EXPECT_EQ(result.at("gap"), 0.25);
  EXPECT_EQ(result.at("feasible"), true);
  EXPECT_EQ(result.at("unit"), "s");
  EXPECT_EQ(result.at("devices")[1].at("utilisation"), 0.25);
  EXPECT_EQ(result.at("transfers"), (json{{"count", 1}, {"bytes", 8}}));
  EXPECT_FALSE(result.contains("overflow"));
}

TEST(AResult, ThatOverflowsNamesTheOpAndTheDevice) {
  Timeline timeline = two_op_timeline();
  timeline.overflow = Timeline::Overflow{.op = 0, .device = 1, .needed = 20, .capacity = 10};
  Outcome outcome = good_outcome();
  outcome.feasible = false;
  const json result = json::parse(to_json(simulation_result(outcome, two_op_problem(), timeline)));
  EXPECT_EQ(result.at("feasible"), false);
  EXPECT_EQ(result.at("overflow"), (json{{"op", "a"}, {"device", "device1"}, {"needed", 20}, {"capacity", 10}}));
}

TEST(AResult, OfAPlacementCarriesThePlacementAsItsFile) {
  const json result = json::parse(to_json(good_place()));
  EXPECT_EQ(result.at("method"), "heft");
  EXPECT_EQ(result.at("seconds"), 0.1);
  EXPECT_EQ(result.at("single_device_makespan"), 5.0);
  EXPECT_EQ(parse_placement("test", result.at("placement").dump()).placement, good_place().placement);
}

TEST(AComparison, SaysWhyAMethodFoundNothing) {
  const json results = json::parse(to_json(good_comparison())).at("results");
  ASSERT_EQ(results.size(), 2u);
  for (const char* key : {"graph", "method", "makespan", "lower_bound", "gap", "seconds", "feasible"})
    EXPECT_TRUE(results[0].contains(key)) << key;
  EXPECT_EQ(results[1].at("makespan"), nullptr);
  EXPECT_EQ(results[1].at("reason"), "does not fit");
  EXPECT_EQ(results[1].at("feasible"), false);
}

TEST(AResult, SurvivesNamesThatAreNotUtf8) {
  PlaceResult result = good_place();
  result.run.outcome.made.graph = "\xff.json";
  EXPECT_NO_THROW(parse_result("test", to_json(result)));
}

TEST(AnOutcome, IsBetterByWhatIsToBeExpected) {
  // 4 exact and 6 expected lose to 5 exact and 5.5 expected.
  Outcome a = good_outcome(), b = good_outcome();
  a.expected = 6;
  b.made.makespan = 5;
  b.expected = 5.5;
  EXPECT_TRUE(better(b, a));
  EXPECT_FALSE(better(a, b));
  // By exact times it is the other way round, and by quantiles as they say.
  a.objective = b.objective = "exact";
  EXPECT_TRUE(better(a, b));
  a.objective = b.objective = "p95";
  a.p95 = 7;
  b.p95 = 8;
  EXPECT_TRUE(better(a, b));
  b.feasible = false;
  EXPECT_TRUE(better(a, b));
}

}  // namespace
}  // namespace doppler
